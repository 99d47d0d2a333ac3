#!/usr/bin/env python3
"""Signing in at a real OpenID provider (npm's oidc-provider, on loopback): the device flow, client credentials, groups that
change, keys that rotate, a provider that is away, hostile tokens; and the contexts of the command line."""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request

from patience import eventually, stretched
from server import Problem, Server, berth_binary, fresh_directory

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = """cluster: test
queues:
  research: {guaranteed: {gpus: 4}}
  other: {guaranteed: {gpus: 4}}
roles:
  - {subject: group:corp:nlp, role: member, queue: research}
  - {subject: user:corp:robot, role: member, queue: research}
  - {subject: user:lab:robot, role: viewer, queue: other}
"""
SECRET = "not-a-real-secret"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Provider:
    """npm's oidc-provider on a port of its own."""

    def __init__(self, home, directory, **state):
        self.home, self.directory, self.port = home, directory, free_port()
        self.state = {"key": "k1", "algorithm": "RS256", "groups": {"ada": ["nlp"]}, "token_s": 300, **state}
        self.url = f"http://127.0.0.1:{self.port}"
        self.script = os.path.join(home, f"provider-{os.getpid()}-{self.port}.mjs")
        shutil.copy(os.path.join(HERE, "provider", "provider.mjs"), self.script)  # its imports are found from there
        self.start()

    def start(self):
        file = os.path.join(self.directory, f"provider-{self.port}.json")
        with open(file, "w") as out:
            json.dump(self.state, out)
        self.log = open(os.path.join(self.directory, "provider.log"), "a")
        self.process = subprocess.Popen(["node", self.script, str(self.port), file], stdout=self.log, stderr=self.log)

        def listens():
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            assert self.process.poll() is None, open(self.log.name).read()
            return False
        eventually("the provider listens", listens)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def discard(self):
        self.stop()
        os.remove(self.script)

    def post(self, path, data=b"", headers=None):
        request = urllib.request.Request(self.url + path, data, headers or {}, method="POST")
        with urllib.request.urlopen(request, timeout=stretched(20)) as answer:
            return answer.read().decode()

    def change(self, **state):
        self.state.update(state)
        self.post("/test/state", json.dumps(state).encode())

    def approve(self, code, user="ada"):
        assert self.post(f"/test/approve?user_code={code}&user={user}") == "true"

    def robot_token(self, resource="urn:berth"):
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "resource": resource, "scope": "use"})
        basic = base64.b64encode(f"robot:{SECRET}".encode()).decode()
        return json.loads(self.post("/token", form.encode(), {"Authorization": "Basic " + basic}))["access_token"]


class World:
    """A provider, a server that takes its tokens, and a user's home."""

    def __init__(self, home, **state):
        self.directory = fresh_directory()
        self.provider = Provider(home, self.directory, **state)
        config, self.issuers = (os.path.join(self.directory, name) for name in ("cluster.yaml", "issuers.yaml"))
        with open(config, "w") as file:
            file.write(CONFIG)
        with open(self.issuers, "w") as file:
            file.write(f"issuers:\n  - {{name: corp, url: '{self.provider.url}', audience: [berth, berth-cli], "
                       "clock_skew: 0s, refresh: 10s}\n")
        self.server = Server(self.directory, config, flags=["--issuers", self.issuers])
        assert self.server.start(), self.server.tail()
        self.environment = {"HOME": self.directory, "PATH": os.environ["PATH"]}
        self.credentials = os.path.join(self.directory, ".config", "berth", "credentials.json")

    def discard(self):
        self.server.kill()
        self.provider.discard()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.port}"

    def berth(self, *words, **environment):
        return subprocess.run([berth_binary(), *words], env={**self.environment, **environment}, capture_output=True,
                              text=True, timeout=stretched(60))

    def done(self, *words, **environment):
        run = self.berth(*words, **environment)
        assert run.returncode == 0, (words, run.stdout, run.stderr)
        return run.stdout

    def sign_in(self, user="ada", *words):
        command = [berth_binary(), "login", "--server", self.url, "--issuer", self.provider.url, "--client-id", "berth-cli",
                   "--scope", "openid offline_access groups", *words]
        login = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        while not (code := re.search(r"^ {4}([A-Z]{4}-[A-Z]{4})$", said, re.M)):
            line = login.stdout.readline()
            assert line, said
            said += line
        assert self.provider.url + "/device" in said, said
        self.provider.approve(code.group(1), user)
        said += login.communicate(timeout=stretched(60))[0]
        assert login.returncode == 0, said
        return said

    def status(self, token, path="/v1/identity"):
        try:
            self.server.ask("GET", path, headers={"Authorization": "Bearer " + token})
            return 200
        except Problem as problem:
            self.said = problem.body
            return problem.status

    def token(self):
        with open(self.credentials) as file:
            return json.load(file)["contexts"][0]["token"]

    def let_token_end(self):
        """The command line believes that its token ends now, and renews it with the next command."""
        with open(self.credentials) as file:
            text = file.read()
        ends = json.loads(text)["contexts"][0]["expires_s"]
        with open(self.credentials, "w") as file:
            file.write(text.replace(str(ends), str(int(time.time()))))


def a_user_signs_in_by_the_device_flow(home):
    world = World(home)
    said = world.sign_in()
    assert stat.S_IMODE(os.stat(world.credentials).st_mode) == 0o600
    assert world.token() not in said
    who = json.loads(world.done("whoami", "-o", "json"))
    assert who["subject"] == "user:corp:ada" and who["user"] == "corp:ada", who
    assert who["roles"] == [{"role": "member", "queue": "research"}], who
    job = json.loads(world.done("submit", "--queue", "research", "--gpus", "1", "-o", "json", "--", "sleep", "600"))["id"]
    assert world.server.ask("GET", f"/v1/jobs/{job}")["user"] == "corp:ada"
    refused = world.berth("submit", "--queue", "other", "--gpus", "1", "--", "true")
    assert refused.returncode == 6, refused
    assert "user:corp:ada may not submit in queue other" in refused.stderr, refused.stderr
    assert world.done("auth", "can-i", "submit", "research") == "yes: group:corp:nlp is member at research\n"
    assert world.done("auth", "can-i", "stop-job", str(job)).startswith("yes")
    denied = world.berth("auth", "can-i", "submit", "other")
    assert (denied.returncode, denied.stdout) == (1, "no; that takes the role member at other\n"), denied
    assert world.berth("auth", "can-i", "stop-job", "research", "--owner", "corp:eve").returncode == 1
    explained = world.done("auth", "explain")
    assert "in group:corp:nlp\ngroup:corp:nlp is member at research and below" in explained, explained
    assert world.berth("auth", "explain", "--as", "user:corp:robot").returncode == 6  # others are for auditors
    token_file = os.path.join(world.server.data, "token")
    assert "yes" in world.done("auth", "can-i", "submit", "research", "--as", "user:corp:eve", "--group", "corp:nlp",
                               "--token-file", token_file)
    assert "no" in world.berth("auth", "can-i", "submit", "research", "--as", "user:corp:eve", "--token-file", token_file).stdout
    own = world.server.ask("POST", "/v1/tokens", {"name": "ci", "role": "viewer", "queue": "other", "expires_in_s": 60})
    assert "token:ci" in world.done("whoami", BERTH_TOKEN=own["token"])  # the environment wins over the context
    os.chmod(world.credentials, 0o644)
    assert "chmod 600" in world.berth("whoami").stderr
    os.chmod(world.credentials, 0o600)
    world.done("logout")
    with open(world.credentials) as file:
        assert '"refresh_token":""' in file.read()
    assert world.berth("whoami").returncode == 6
    world.discard()


def removal_from_a_group_ends_access_with_the_token(home):
    world = World(home, token_s=60)
    world.sign_in()
    copied = world.token()
    assert world.status(copied) == 200
    world.provider.change(groups={"ada": []})
    world.let_token_end()
    who = json.loads(world.done("whoami", "-o", "json"))  # with a renewed token
    assert who["subject"] == "user:corp:ada" and who["roles"] == [], who
    assert world.token() != copied
    assert world.berth("submit", "--queue", "research", "--gpus", "1", "--", "true").returncode == 6
    world.provider.change(groups={"ada": ["nlp"]})
    world.server.pass_time(60)
    assert world.status(copied) == 401 and "expired" in world.said, world.said
    world.discard()


def a_machine_signs_in_by_client_credentials(home):
    world = World(home, algorithm="ES256")
    words = ["login", "--client-credentials", "--server", world.url, "--issuer", world.provider.url, "--client-id", "robot",
             "--resource", "urn:berth", "--scope", "use"]
    assert "secret is missing" in world.berth(*words).stderr
    assert "refuses" in world.berth(*words, BERTH_CLIENT_SECRET="wrong").stderr
    world.done(*words, BERTH_CLIENT_SECRET=SECRET)
    with open(world.credentials) as file:
        assert SECRET not in file.read()
    assert json.loads(world.done("whoami", "-o", "json"))["subject"] == "user:corp:robot"
    secret_file = os.path.join(world.directory, "secret")
    with open(secret_file, "w") as file:
        file.write(SECRET + "\n")
    world.done(*words, "--client-secret-file", secret_file)
    first = world.token()
    world.let_token_end()
    world.done("whoami")  # renewed without being asked
    assert world.token() != first
    world.discard()


def keys_rotate_while_requests_come(home):
    world = World(home)
    before = world.provider.robot_token()
    assert world.status(before) == 200
    stop, failures, asked = threading.Event(), [], [0]

    def keep_asking():
        while not stop.is_set():
            if world.status(before) != 200:
                failures.append(world.said)
            asked[0] += 1
            time.sleep(0.01)  # allowed: paces a load
    asking = threading.Thread(target=keep_asking)
    asking.start()
    world.provider.stop()
    before_it_went = asked[0]
    eventually("twenty more requests", lambda: asked[0] > before_it_went + 20)
    stop.set()
    asking.join()
    assert not failures, failures[:3]  # cached keys serve while the provider is away
    assert world.status(before, "/v1/jobs") == 200
    world.provider.state["key"] = "k2"
    world.provider.start()
    after = world.provider.robot_token()
    assert world.status(after) == 200, world.said  # by a key that the server had to fetch first
    assert world.status(before) == 401, "a token of a withdrawn key is taken"
    assert "does not list" in world.said, world.said
    world.provider.stop()
    assert world.status(after) == 200
    login = world.berth("login", "--server", world.url, "--issuer", world.provider.url, "--client-id", "x")
    assert login.returncode == 5 and "connect" in login.stderr, login
    world.discard()


def encoded(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def hostile_tokens_are_refused(home):
    world = World(home)
    good = world.provider.robot_token()
    assert world.status(good) == 200
    header, claims, signature = good.split(".")
    fields = json.loads(base64.urlsafe_b64decode(claims + "=="))
    with urllib.request.urlopen(world.provider.url + "/jwks") as answer:
        keys = answer.read()
    as_admin = encoded({**fields, "sub": "admin"})

    def by_hmac(secret, algorithm="HS256"):
        text = encoded({"alg": algorithm, "kid": "k1"}) + "." + as_admin
        return text + "." + encoded(hmac.new(secret, text.encode(), hashlib.sha256).digest())
    doubled = encoded(base64.urlsafe_b64decode(claims + "==")[:-1] + b',"sub":"admin"}')
    hostile = {
        "no signature": f"{encoded({'alg': 'none'})}.{claims}.",
        "None": f"{encoded({'alg': 'None'})}.{as_admin}.{signature}",
        "hmac with the public key": by_hmac(keys),
        "hmac named RS256": by_hmac(json.dumps(json.loads(keys)["keys"][0]).encode(), "RS256"),
        "other claims": f"{header}.{as_admin}.{signature}",
        "doubled claims": f"{header}.{doubled}.{signature}",
        "unknown key": f"{encoded({'alg': 'RS256', 'kid': 'k9'})}.{claims}.{signature}",
        "key by path": f"{encoded({'alg': 'RS256', 'kid': '../../../../etc/passwd'})}.{claims}.{signature}",
        "critical": f"{encoded({'alg': 'RS256', 'kid': 'k1', 'crit': ['x'], 'x': 1})}.{claims}.{signature}",
        "own key in the header": f"{encoded({'alg': 'RS256', 'kid': 'k1', 'jwk': json.loads(keys)['keys'][0]})}.{claims}.{signature}",
        "20 kB": f"{header}.{'a' * 20_000}.{signature}",
        "padding": good + "=",
        "dots": "..",
    }
    for name, token in hostile.items():
        assert world.status(token) == 401, name
        assert token not in world.said, name
    try:  # a head of 1 MB is not even read
        assert world.status("a" * 1_000_000) == 431
    except (ConnectionError, OSError):
        pass
    world.provider.change(token_s=5)
    short = world.provider.robot_token()
    world.server.pass_time(6)
    assert world.status(short) == 401 and "expired" in world.said, world.said
    stranger = Provider(home, world.directory)
    assert world.status(stranger.robot_token()) == 401 and "does not take" in world.said, world.said
    stranger.discard()
    assert world.status(good) == 200
    log = world.server.tail()
    assert "signed tokens refused" in log, log
    assert signature not in log
    world.discard()


def the_same_name_of_two_issuers_is_two_people(home):
    world = World(home)
    lab = Provider(home, world.directory)
    with open(world.issuers, "a") as file:
        file.write(f"  - {{name: lab, url: '{lab.url}', audience: berth}}\n")
    world.server.stop()
    assert world.server.start(), world.server.tail()
    said = [world.server.ask("GET", "/v1/identity", headers={"Authorization": "Bearer " + one.robot_token()})
            for one in (world.provider, lab)]
    assert [one["subject"] for one in said] == ["user:corp:robot", "user:lab:robot"], said
    assert [one["roles"] for one in said] == [[{"role": "member", "queue": "research"}], [{"role": "viewer", "queue": "other"}]]
    lab.discard()
    world.discard()


def a_provider_that_is_busy_is_asked_less_often(_home):
    asked, expires_in = [], [600]

    class Busy(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def answer(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(200, {"issuer": url, "token_endpoint": url + "/token", "device_authorization_endpoint": url + "/device"})

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/device":
                self.answer(200, {"device_code": "d", "user_code": "AB\x1b[2J", "verification_uri": url, "interval": 1,
                                  "expires_in": expires_in[0]})
            else:
                asked.append(time.monotonic())
                self.answer(400, {"error": ["authorization_pending", "slow_down", "expired_token"][len(asked) - 1]})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    directory = fresh_directory()

    def login():
        run = subprocess.run([berth_binary(), "login", "--server", "http://127.0.0.1:1", "--issuer", url, "--client-id", "x"],
                             env={"HOME": directory, "PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=stretched(60))
        assert run.returncode == 5 and "the code has expired" in run.stderr, run
        assert "\x1b" not in run.stdout, run.stdout  # a provider does not draw on the terminal
    login()
    assert len(asked) == 3 and asked[2] - asked[1] > 5.5, asked
    expires_in[0] = 1
    login()
    assert len(asked) == 3, "asked for a code that had ended"
    server.shutdown()
    assert not os.path.exists(os.path.join(directory, ".config", "berth", "credentials.json"))
    shutil.rmtree(directory)


def contexts_are_kept_apart(home):
    world = World(home)
    world.sign_in()
    seen = []

    class Thief(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            seen.append(self.headers.get("Authorization"))
            self.send_error(404)
    thief = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Thief)
    threading.Thread(target=thief.serve_forever, daemon=True).start()
    elsewhere = f"http://127.0.0.1:{thief.server_port}"
    world.berth("whoami", "--server", elsewhere)
    world.berth("whoami", BERTH_SERVER=elsewhere)
    assert "is set" in world.done("context", "set", "lab", "--server", elsewhere)
    world.berth("whoami", "--context", "lab")
    assert seen == [None, None, None], "the token of one server went to another"
    rows = json.loads(world.done("context", "-o", "json"))
    assert [(one["name"], one["current"], one["signed_in"]) for one in rows] == [("default", True, True), ("lab", False, False)]
    assert world.token() not in json.dumps(rows)
    assert "user:corp:ada" in world.done("whoami")
    world.done("context", "use", "lab")
    world.berth("whoami")
    assert seen[3:] == [None]
    assert "user:corp:ada" in world.done("whoami", "--context", "default")
    world.done("context", "delete", "lab")
    assert world.berth("context", "use", "lab").returncode == 3
    thief.shutdown()
    world.discard()


def main():
    found = subprocess.run([os.path.join(HERE, "provider", "modules")], capture_output=True, text=True)
    if found.returncode != 0:
        print("SKIPPED: " + (found.stdout or found.stderr).strip())
        return 77
    home = found.stdout.strip()
    cases = [a_user_signs_in_by_the_device_flow, removal_from_a_group_ends_access_with_the_token,
             a_machine_signs_in_by_client_credentials, keys_rotate_while_requests_come, hostile_tokens_are_refused,
             the_same_name_of_two_issuers_is_two_people, a_provider_that_is_busy_is_asked_less_often, contexts_are_kept_apart]
    failed = 0
    for case in cases:
        try:
            case(home)
            print("passed:", case.__name__.replace("_", " "))
        except Exception:
            failed += 1
            print("FAILED:", case.__name__.replace("_", " "))
            traceback.print_exc()
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What a job shows: to this server its own token, and to others an identity that PyPI's PyJWT verifies by discovery.

Needs packages of PyPI: pypi.py."""
import calendar
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pypi
import tally
from patience import eventually, stretched
from server import Problem, Server, berth_binary, for_jobs, fresh_directory

REQUIREMENTS = "requirements-identity.txt"
CONFIG = "cluster: test\nqueues:\n  research: {queues: {nlp: {}, vision: {}}}\n"
SHOW = 'echo "own $BERTH_JOB_TOKEN"; echo "identity $({berth} job-token --audience vault)"; echo over; exec sleep 600'


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class World:
    def __init__(self, *flags):
        self.directory = fresh_directory()
        config = os.path.join(self.directory, "cluster.yaml")
        with open(config, "w") as file:
            file.write(CONFIG)
        self.server = Server(self.directory, config, flags=["--port", str(free_port()), *flags])
        assert self.server.start(), self.server.tail()
        self.berth = for_jobs(self.directory, berth_binary())

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.port}"

    def discard(self):
        for job in self.server.all("/v1/jobs"):
            self.server.ask("DELETE", f"/v1/jobs/{job['id']}")
        self.server.wait_idle()
        self.server.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, queue="research/nlp", user="ann", command=None, **more):
        """Starts a job that shows its tokens and goes on; returns its id and both tokens."""
        job = self.server.ask("POST", "/v1/jobs", {"name": "shows", "queue": queue, "user": user, "cpus": "0.1",
                                                   "command": command or SHOW.replace("{berth}", self.berth), **more})["id"]
        eventually(f"job {job} shows its tokens", lambda: "over" in self.server.text(f"/v1/jobs/{job}/logs"))
        words = dict(line.split(" ", 1) for line in self.server.text(f"/v1/jobs/{job}/logs").splitlines() if " " in line)
        assert words["identity"], self.server.text(f"/v1/jobs/{job}/logs?stream=stderr")
        return job, words["own"], words["identity"]

    def by(self, token, method, path, body=None):
        """The status and the answer to a request with this token."""
        try:
            return 200, self.server.ask(method, path, body, headers={"Authorization": "Bearer " + token})
        except Problem as problem:
            return problem.status, problem.body

    def cli(self, *words, code=0):
        environment = {**os.environ, "BERTH_SERVER": self.url, "BERTH_TOKEN": self.server.token, "HOME": self.directory}
        done = subprocess.run([berth_binary(), *words], capture_output=True, text=True, env=environment, timeout=stretched(60))
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr


def verified(issuer, token, audience="vault", at=None):
    """The claims of the token, as a service verifies it that knows the issuer's URL alone. `at`: where that is reached."""
    import jwt
    with urllib.request.urlopen((at or issuer) + "/.well-known/openid-configuration", timeout=stretched(20)) as answer:
        document = json.load(answer)
    assert document["issuer"] == issuer, document
    keys = jwt.PyJWKClient(document["jwks_uri"].replace(issuer, at or issuer))
    return jwt.decode(token, keys.get_signing_key_from_jwt(token).key, audience=audience, issuer=issuer,
                      algorithms=document["id_token_signing_alg_values_supported"],
                      options={"require": ["exp", "iat", "nbf", "sub", "aud", "iss", "jti"]})


def refused(error, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except error:
        return
    raise AssertionError(f"it is not refused: {arguments}")


def a_service_verifies_by_discovery_which_job_it_is():
    import jwt
    world = World()
    begun = int(time.time())
    job, own, identity = world.run()
    claims = verified(world.url, identity)
    assert claims["sub"] == f"queue:research/nlp:job:{job}:attempt:1", claims
    assert (claims["berth_queue"], claims["berth_job"], claims["berth_attempt"], claims["berth_user"]) == ("research/nlp", job, 1, "ann")
    now = time.time()
    assert claims["exp"] - claims["iat"] == 600 and begun - 5 <= claims["iat"] <= now + 5, claims
    refused(jwt.InvalidAudienceError, verified, world.url, identity, audience="another")
    changed = identity.split(".")
    changed[1] = jwt.utils.base64url_encode(json.dumps({**claims, "berth_job": 99}).encode()).decode()
    refused(jwt.InvalidSignatureError, verified, world.url, ".".join(changed))
    # Each is made anew, for the audience that was asked for.
    _, again = world.by(own, "POST", f"/v1/jobs/{job}/identity?audience=" + urllib.parse.quote("https://other.example.com/a?b"))
    other = verified(world.url, again["token"], audience="https://other.example.com/a?b")
    assert other["jti"] != claims["jti"]
    assert calendar.timegm(time.strptime(again["expires"][:19], "%Y-%m-%dT%H:%M:%S")) == other["exp"], (again, other)
    # This server is none of the services that take it.
    for path in ("/v1/identity", f"/v1/jobs/{job}", "/v1/jobs"):
        assert world.by(identity, "GET", path)[0] == 401, path
    mode = os.stat(os.path.join(world.server.data, "signing-keys.json")).st_mode
    assert stat.S_IMODE(mode) == 0o600, oct(mode)
    world.discard()


def the_token_of_a_job_speaks_for_that_job_alone_and_while_it_runs():
    world = World()
    job, own, _ = world.run()
    other, of_other, _ = world.run(queue="research/vision", user="bob")
    assert own != of_other
    status, who = world.by(own, "GET", "/v1/identity")
    assert status == 200 and who["subject"] == f"job:{job}" and who["roles"] == [] and who["authenticated_by"] == "job-token", who
    assert world.by(own, "GET", f"/v1/jobs/{job}")[1]["phase"] == "running"
    assert world.by(own, "POST", f"/v1/jobs/{job}/checkpoint", {"attempt": 1, "step": 7})[0] == 200
    for method, path in (("GET", f"/v1/jobs/{other}"), ("POST", f"/v1/jobs/{other}/identity?audience=vault"),
                         ("DELETE", f"/v1/jobs/{other}")):
        assert world.by(own, method, path)[0] == 404, path
    for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/queues"), ("DELETE", f"/v1/jobs/{job}"), ("GET", "/v1/tokens"),
                         ("GET", f"/v1/jobs/{job}/logs"), ("POST", "/v1/keys/rotate")):
        assert world.by(own, method, path)[0] == 403, path
    assert world.by(own, "POST", "/v1/jobs", {"queue": "research/nlp", "command": "true"})[0] == 403
    status, said = world.by(world.server.token, "POST", f"/v1/jobs/{job}/identity?audience=vault")
    assert status == 403 and "BERTH_JOB_TOKEN" in said, said
    forged = own.replace(f"-{job}-", f"-{other}-")
    assert world.by(forged, "GET", "/v1/identity")[0] == 401
    # Its owner's access is ended: then the job has none either. The other job's has.
    world.cli("revoke", "--subject", "user:ann")
    assert world.by(own, "POST", f"/v1/jobs/{job}/identity?audience=vault")[0] == 403
    assert world.by(of_other, "POST", f"/v1/jobs/{other}/identity?audience=vault")[0] == 200
    world.cli("revoke", "--subject", "user:ann", "--lift")
    # A restart changes neither the token nor the keys.
    world.server.kill()
    assert world.server.start(), world.server.tail()
    assert world.by(own, "POST", f"/v1/jobs/{job}/identity?audience=vault")[0] == 200
    world.server.ask("DELETE", f"/v1/jobs/{job}")
    eventually("the job ends", lambda: job not in [one["id"] for one in world.server.all("/v1/jobs")])
    for path in ("/v1/identity", f"/v1/jobs/{job}"):
        assert world.by(own, "GET", path)[0] == 401, path
    assert world.by(own, "POST", f"/v1/jobs/{job}/identity?audience=vault")[0] == 401
    world.discard()


def a_token_of_an_earlier_attempt_is_refused():
    world = World()
    first = os.path.join(world.directory, "first")
    script = f'if [ ! -e {first} ]; then echo "$BERTH_JOB_TOKEN" > {first}; exit 1; fi; ' + SHOW.replace("{berth}", world.berth)
    job, own, identity = world.run(command=script, retries=1)
    with open(first) as file:
        earlier = file.read().strip()
    assert verified(world.url, identity)["sub"].endswith(":attempt:2")
    assert world.by(own, "GET", "/v1/identity")[0] == 200
    assert world.by(earlier, "GET", "/v1/identity")[0] == 401
    world.discard()


def keys_rotate_in_mid_flight_and_can_be_withdrawn():
    import jwt
    world = World()
    job, own, before = world.run()
    first = world.cli("keys", "-o", "json")
    assert "key " in world.cli("keys", "rotate")
    _, after = world.by(own, "POST", f"/v1/jobs/{job}/identity?audience=vault")
    assert jwt.get_unverified_header(before)["kid"] != jwt.get_unverified_header(after["token"])["kid"]
    for token in (before, after["token"]):
        assert verified(world.url, token)["berth_job"] == job
    assert [line.split()[-1] for line in world.cli("keys").splitlines()] == ["SIGNS", "yes", "no"]
    assert len(json.loads(first)["keys"]) == 1
    world.cli("keys", "rotate", "--withdraw")
    for token in (before, after["token"]):
        refused(jwt.PyJWKClientError, verified, world.url, token)
    _, last = world.by(own, "POST", f"/v1/jobs/{job}/identity?audience=vault")
    assert verified(world.url, last["token"])["berth_job"] == job
    with urllib.request.urlopen(world.url + "/v1/keys", timeout=stretched(20)) as answer:
        assert set(json.load(answer)["keys"][0]) == {"kty", "kid", "use", "alg", "n", "e"}
    member = world.server.ask("POST", "/v1/tokens", {"name": "ci", "role": "operator", "expires_in_s": 600})["token"]
    assert world.by(member, "POST", "/v1/keys/rotate")[0] == 403
    world.discard()


def the_server_is_named_as_others_reach_it():
    world = World("--url", "https://berth.example.com")
    job, _, _ = world.run(command='echo "own $BERTH_JOB_SERVER"; echo "identity none"; echo over; exec sleep 600')
    assert "own https://berth.example.com\n" in world.server.text(f"/v1/jobs/{job}/logs")
    token = world.run(command='echo "own $BERTH_JOB_TOKEN"; echo "identity none"; echo over; exec sleep 600')[1]
    _, shown = world.by(token, "POST", f"/v1/jobs/{job + 1}/identity?audience=vault")
    assert verified("https://berth.example.com", shown["token"], at=world.url)["berth_job"] == job + 1
    world.discard()
    for url in ("http://berth.example.com", "https://berth.example.com/", "berth.example.com", "https://a.example?b"):
        done = subprocess.run([berth_binary(), "serve", "--data", os.path.join(fresh_directory(), "data"), "--no-node", "--url", url],
                              capture_output=True, text=True, timeout=stretched(60))
        assert done.returncode == 2 and "--url" in done.stderr, (url, done.stderr)


def outside_a_job_there_is_nothing_to_show():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_JOB")}
    done = subprocess.run([berth_binary(), "job-token", "--audience", "vault"], capture_output=True, text=True, env=environment, timeout=stretched(60))
    assert done.returncode == 2 and "BERTH_JOB_TOKEN" in done.stderr, done.stderr


if __name__ == "__main__":
    pypi.enter(REQUIREMENTS)
    sys.exit(tally.run([
        a_service_verifies_by_discovery_which_job_it_is,
        the_token_of_a_job_speaks_for_that_job_alone_and_while_it_runs,
        a_token_of_an_earlier_attempt_is_refused,
        keys_rotate_in_mid_flight_and_can_be_withdrawn,
        the_server_is_named_as_others_reach_it,
        outside_a_job_there_is_nothing_to_show,
    ]))

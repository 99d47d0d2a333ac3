"""A berth server of the tests' own: started in a fresh directory, asked over HTTP, killed at will."""
import functools
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from patience import eventually, stretched

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def berth_binary():
    found = os.environ.get("BERTH") or os.path.join(ROOT, "build", "dev", "berth")
    if not os.path.exists(found):
        raise SystemExit(f"no berth program at {found}; set BERTH")
    return found


@functools.cache
def has_test_clock():
    """Whether this berth has the flags of tests: it is no release."""
    words = ["serve", "--data", "/nonexistent", "--config", "/nonexistent", "--test-clock", "/nonexistent"]
    told = subprocess.run([berth_binary(), *words], capture_output=True, text=True, check=False).stderr
    return "not expected" not in told


class Problem(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Server:
    def __init__(self, directory, config=None, gpus="8xH100-SXM5-80GB", flags=()):
        self.directory = directory
        self.data = os.path.join(directory, "data")
        self.log = os.path.join(directory, "server.log")
        self.config = config
        self.gpus = gpus
        self.flags = list(flags)
        self.node_name = "n1"
        self.process = None
        self.port = None
        self.test_clock = os.path.join(directory, "test-clock")
        self.passed_ms = 0
        self.program = [berth_binary()]

    def run_as(self, uid):
        """The server is to run as this user. It gets the programs to where the user can read them."""
        programs = os.path.join(self.directory, "programs")
        os.makedirs(programs, exist_ok=True)
        for name in ("berth", "berth-supervise"):
            shutil.copy(os.path.join(os.path.dirname(berth_binary()), name), programs)
        os.chown(self.directory, uid, uid)
        self.program = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", os.path.join(programs, "berth")]

    def start(self, environment=None, patience_s=60):
        """Starts the server; False if it ended before it was ready (as a fault may make it)."""
        ready = os.path.join(self.directory, "ready")
        if os.path.exists(ready):
            os.remove(ready)
        command = [*self.program, "serve", "--data", self.data, "--ready-file", ready, *self.flags]
        if has_test_clock():
            command += ["--test-clock", self.test_clock]
        if self.node_name:
            command += ["--node-name", self.node_name]
        if self.gpus:
            command += ["--simulate-gpus", self.gpus]
        if self.config:
            command += ["--config", self.config]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, "SECRET_OF_THE_SERVER": "hush", "BERTH_LOCK_DIR": self.directory,
                                                 **(environment or {})})
        eventually(lambda: "the server is ready:\n" + self.tail(),
                   lambda: os.path.exists(ready) or self.process.poll() is not None, patience_s, every_s=0.01)
        if not os.path.exists(ready):
            return False
        with open(ready) as file:
            self.port = int(file.read().strip().rsplit(":", 1)[1])
        with open(os.path.join(self.data, "token")) as file:
            self.token = file.read().strip()
        return True

    def tail(self):
        with open(self.log, errors="replace") as file:
            return file.read()[-3000:]

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(stretched(60))

    def pass_time(self, seconds):
        """So much time passes for the server, and for nothing else. For a release, which has no clock of tests, it does pass."""
        if not has_test_clock():
            time.sleep(seconds)  # allowed: see above
            return
        self.passed_ms += int(seconds * 1000)
        with open(self.test_clock + ".new", "w") as file:
            file.write(str(self.passed_ms))
        os.rename(self.test_clock + ".new", self.test_clock)

    def ask(self, method, path, body=None, headers=None, timeout=20):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=stretched(timeout))
        try:
            text = json.dumps(body) if body is not None else None
            given = {"Authorization": "Bearer " + self.token, **(headers or {})}
            if text is not None:
                given["Content-Type"] = "application/json"
            connection.request(method, path, text, given)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Problem(answer.status, content.decode(errors="replace"))
        return json.loads(content) if content else None

    def text(self, path):
        """An answer that is not JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=stretched(20))
        try:
            connection.request("GET", path, headers={"Authorization": "Bearer " + self.token})
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def all_events(self):
        items, begin = [], 1
        while True:
            page = self.ask("GET", f"/v1/events?from={begin}&limit=1000")
            if not page["items"] and page["next_from"] == begin:
                return items
            items, begin = items + page["items"], page["next_from"]

    def job(self, number):
        return self.ask("GET", f"/v1/jobs/{number}")

    def wait_phase(self, number, *phases, patience_s=60):
        """The job, once it is in one of these phases."""
        seen = {}

        def holds():
            seen.update(self.job(number))
            return seen["phase"] in phases and dict(seen)
        return eventually(lambda: f"job {number} is {' or '.join(phases)}, but it is {seen}", holds, patience_s)

    def wait_idle(self):
        """No job lives."""
        eventually(lambda: f"no job is left, but {self.all('/v1/jobs')}", lambda: not self.all("/v1/jobs"))

    def all(self, path):
        """Every item of a paged list."""
        items, cursor = [], None
        while True:
            page = self.ask("GET", path + ("&" if "?" in path else "?") + "limit=500" + (f"&cursor={cursor}" if cursor else ""))
            items += page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return items


def python_of_jobs():
    """A Python that every user may run: this one may lie in the home of root."""
    path = os.path.realpath(sys.executable)
    while path != "/":
        if not os.stat(path).st_mode & 0o001:
            return "/usr/bin/python3"
        path = os.path.dirname(path)
    return sys.executable


def for_jobs(directory, path):
    """A copy of a script that every user may read: the tree that it is from may lie in the home of root."""
    copy = shutil.copy(path, directory)
    os.chmod(copy, 0o755)
    return copy


def fresh_directory():
    """A directory that jobs may write in, too: a server that is root runs them as other users."""
    directory = tempfile.mkdtemp(prefix="berth-e2e-")
    os.chmod(directory, 0o1777)
    return directory


def start_with(config, flags=()):
    """A server in a fresh directory under this text of cluster.yaml; discard() ends it."""
    directory = fresh_directory()
    path = os.path.join(directory, "cluster.yaml")
    with open(path, "w") as file:
        file.write(config)
    server = Server(directory, path, flags=flags)
    assert server.start(), server.tail()
    return server


def discard(server):
    server.kill()
    shutil.rmtree(server.directory, ignore_errors=True)


def processes_of(directory):
    """Every live process that was started for a task of this data directory, by its environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and directory.encode() in environment and b"BERTH_JOB=" in environment:
            found.append(int(pid))
    return found

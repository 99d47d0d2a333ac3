#!/usr/bin/env python3
"""The Unix socket of a real server: one's login name says who one is; root and the server's user are admins; a process of a
task is nobody, whatever user it has."""
import array
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys

import tally
from patience import eventually, stretched
from server import Server, berth_binary, discard, fresh_directory

CONFIG = "cluster: test\nqueues:\n  red: {guaranteed: {gpus: 4}}\n"
ROLE = "roles:\n  - {subject: user:daemon, role: member, queue: red}\n"
DAEMON, NOBODY = 1, 65534  # user ids that Debian has on every machine


def berth_for_all():
    """The program where every user can run it."""
    if subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "test", "-x", berth_binary()]).returncode == 0:
        return berth_binary()
    directory = fresh_directory()
    os.chmod(directory, 0o755)
    return shutil.copy(berth_binary(), directory)


BERTH = berth_for_all() if os.geteuid() == 0 else None


class Local(Server):
    """A server with a socket that every user may connect to."""

    def __init__(self, config=CONFIG, user=None):
        super().__init__(fresh_directory())
        os.chmod(self.directory, 0o755)
        self.config = os.path.join(self.directory, "cluster.yaml")
        with open(self.config, "w") as file:
            file.write(config)
        self.socket = os.path.join(self.directory, "berth.sock")
        self.flags = ["--socket", self.socket]

    def request(self, path, connected=None):
        """Status and document of one request over the socket."""
        with connected or connect(self.socket) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while chunk := client.recv(65536):
                answer += chunk
        head, body = answer.split(b"\r\n\r\n", 1)
        return int(head.split()[1]), json.loads(body)

    def cli(self, *words, user=0, address=None, environment=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
        where = ["--server", address or "unix:" + self.socket] if address != "" else []
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        return subprocess.run([*as_user, BERTH, *where, *words], capture_output=True, text=True, timeout=stretched(60),
                              env={**clean, "HOME": "/nonexistent", **(environment or {})})


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(stretched(20))
    client.connect(path)
    return client


def started(config=CONFIG):
    server = Local(config)
    assert server.start(), server.tail()
    return server


def ones_login_name_says_who_one_is():
    server = started(CONFIG + ROLE)
    assert stat.S_IMODE(os.stat(server.socket).st_mode) == 0o666
    me = json.loads(server.cli("whoami", "-o", "json").stdout)
    assert me == {"subject": "user:root", "user": "root", "authenticated_by": "socket", "connection": "unix-socket",
                  "roles": [{"role": "admin", "queue": ""}]}, me
    member = server.cli("whoami", user=DAEMON)
    assert member.stdout == "user:daemon, submits as daemon, known by the Unix socket\nmember at red\n", member
    assert server.cli("submit", "--gpus", "1", "--", "true", user=DAEMON).returncode == 0
    assert server.cli("whoami", user=NOBODY).stdout.startswith("user:nobody, submits as nobody"), "nobody has a name"
    for words in (["jobs"], ["nodes"], ["status"], ["token", "create", "x", "--queue", "/", "--role", "admin"], ["apply", "-f", server.config],
                  ["submit", "--queue", "red", "--gpus", "1", "--", "true"]):
        denied = server.cli(*words, user=NOBODY)
        assert denied.returncode == 6 and "user:nobody may not" in denied.stderr, (words, denied)
    nameless = server.cli("whoami", user=54321)
    assert nameless.returncode == 6 and "user 54321 has no login name" in nameless.stderr, nameless
    discard(server)


def a_role_counts_at_once_and_is_recorded_with_who_changed_it():
    server = started()
    assert server.cli("jobs", user=DAEMON).returncode == 6
    with open(server.config, "w") as file:
        file.write(CONFIG + ROLE)
    assert server.cli("apply", "-f", server.config).returncode == 0
    assert server.cli("jobs", user=DAEMON).returncode == 0
    applied = [event for event in server.all_events() if event["kind"] == "cluster-configured"]
    assert applied[-1]["user"] == "user:root", applied[-1]
    with open(server.config, "w") as file:
        file.write(CONFIG)
    assert server.cli("apply", "-f", server.config).returncode == 0
    assert server.cli("jobs", user=DAEMON).returncode == 6
    discard(server)


def a_process_of_a_task_is_nobody():
    server = started()
    ask = f"env HOME=/nonexistent {BERTH} --server unix:{server.socket} whoami"
    script = f"{ask}; (setsid sh -c 'sleep 0.5; exec {ask}' &) ; (setsid setsid nohup sh -c '({ask})' &) ; sleep 3"
    job = server.cli("run", "--queue", "red", "--cpus", "1", "--", "sh", "-c", script)
    told = job.stdout + job.stderr
    assert told.count("a process of a task is nobody") == 3 and "admin" not in told, job
    with_token = server.cli("run", "--queue", "red", "--cpus", "1", "--", "sh", "-c",
                            f"BERTH_TOKEN={server.token} {BERTH} --server unix:{server.socket} whoami")
    assert "admin, submits as admin, known by its token over the Unix socket" in with_token.stdout, with_token
    assert server.cli("whoami").returncode == 0
    discard(server)


def a_connection_whose_process_has_ended_is_nobodys():
    """The server is stopped while a child connects and ends; its connection is used by the parent."""
    server = started()
    ours, theirs = socket.socketpair()
    server.process.send_signal(signal.SIGSTOP)
    child = os.fork()
    if child == 0:
        client = connect(server.socket)
        theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [client.fileno()]))])
        os._exit(0)
    _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    os.waitpid(child, 0)
    inherited = socket.socket(fileno=array.array("i", ancillary[0][2])[0])
    inherited.settimeout(stretched(20))
    server.process.send_signal(signal.SIGCONT)
    status, problem = server.request("/v1/identity", inherited)
    assert status == 401 and "has ended" in problem["detail"], problem
    assert server.request("/v1/identity")[0] == 200
    discard(server)


def the_server_of_an_ordinary_user_knows_him_and_root():
    server = Local()
    os.mkdir(server.data, 0o700)
    os.chown(server.data, NOBODY, NOBODY)
    os.chown(server.directory, NOBODY, NOBODY)
    process = subprocess.Popen(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", BERTH, "serve", "--data",
                                server.data, "--config", server.config, "--socket", server.socket, "--simulate-gpus",
                                "2xH100-SXM5-80GB"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    server.process = process
    eventually("its socket is there", lambda: os.path.exists(server.socket) or process.poll() is not None)
    assert process.poll() is None, process.stderr.read()
    assert "admin at /" in server.cli("whoami", user=NOBODY).stdout
    assert "user:root" in server.cli("whoami").stdout and "admin at /" in server.cli("whoami").stdout
    other = server.cli("whoami", user=DAEMON).stdout
    assert "user:daemon" in other and "admin" not in other, other
    process.terminate()
    process.wait(stretched(30))
    assert not os.path.exists(server.socket), "the socket of a server that ended in order stays"
    process.stderr.close()
    shutil.rmtree(server.directory, ignore_errors=True)


def a_socket_is_not_taken_from_others_nor_put_where_they_could():
    server = started()
    other = Local()
    other.flags = ["--socket", server.socket]
    assert not other.start() and "another server does" in other.tail(), other.tail()
    server.kill()
    assert os.path.exists(server.socket)  # nobody listens: the next one replaces it
    assert server.start() and server.cli("whoami").returncode == 0
    shared = os.path.join(other.directory, "shared")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    plain = os.path.join(other.directory, "plain")
    with open(plain, "w") as file:
        file.write("mine")
    theirs = os.path.join(other.directory, "theirs")
    os.mkdir(theirs)
    os.chown(theirs, NOBODY, NOBODY)
    for path, words in ((shared + "/s", "others may write in"), (plain, "something that is no socket"),
                        (theirs + "/s", "belongs to another user"), (other.directory + "/none/s", "No such file"),
                        (other.directory + "/" + "x" * 120, "at most 107 bytes")):
        other.flags = ["--socket", path]
        assert not other.start() and words in other.tail(), (path, other.tail())
    with open(plain) as file:
        assert file.read() == "mine"
    other.flags = ["--socket", "none"]
    assert other.start() and "unix:" not in other.tail().splitlines()[-1]
    discard(other)
    discard(server)


def the_client_finds_the_socket_and_leaves_the_token_at_home():
    home = fresh_directory()
    state = os.path.join(home, ".local", "state")
    os.makedirs(state)
    server = Server(home)
    server.data = os.path.join(state, "berth")
    assert server.start(), server.tail()
    local = Local()
    at_home = {"HOME": home}
    found = local.cli("whoami", address="", environment=at_home)
    assert "user:root, submits as root, known by the Unix socket" in found.stdout, found
    token = local.cli("whoami", address="", environment={**at_home, "BERTH_TOKEN": server.token})
    assert "admin, submits as admin, known by its token over the Unix socket" in token.stdout, token
    os.chmod(state, 0o700)
    denied = local.cli("whoami", address=f"unix:{server.data}/berth.sock", user=DAEMON)
    assert denied.returncode == 5 and "you may not use it" in denied.stderr, denied
    server.kill()  # the socket file stays, and nobody listens
    gone = local.cli("whoami", address="", environment=at_home)
    assert gone.returncode == 5 and "http://127.0.0.1:6380" in gone.stderr, gone
    named = local.cli("whoami", address=f"unix:{server.data}/berth.sock")
    assert named.returncode == 5 and "no server listens there" in named.stderr, named
    discard(server)


def many_on_the_socket_lock_nobody_out():
    server = started()
    idle = [connect(server.socket) for _ in range(600)]
    for _ in range(20):
        assert server.cli("whoami").returncode == 0
        assert server.ask("GET", "/v1/identity")["subject"] == "admin"
    for one in idle:
        one.close()
    discard(server)


def main():
    if os.geteuid() != 0:
        print("SKIPPED: it takes root to be several users")
        return 77
    cases = [ones_login_name_says_who_one_is, a_role_counts_at_once_and_is_recorded_with_who_changed_it, a_process_of_a_task_is_nobody,
             a_connection_whose_process_has_ended_is_nobodys, the_server_of_an_ordinary_user_knows_him_and_root,
             a_socket_is_not_taken_from_others_nor_put_where_they_could, the_client_finds_the_socket_and_leaves_the_token_at_home,
             many_on_the_socket_lock_nobody_out]
    return tally.run(cases)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Doors that a job, a member or a second server could come in by, on a real server of root: its port, its log, its disk, its
uids, its data directory, its keys, and the ports of gangs."""
import os
import shutil
import signal
import subprocess
import sys

import tally
from hostile_test import ended
from patience import eventually
from server import Problem, Server, berth_binary, discard, fresh_directory, processes_of

CONFIG = "cluster: test\nqueues:\n  a: {guaranteed: {gpus: 4}}\nroles:\n  - {subject: token:ann, role: member, queue: a}\n"
JOB = 52000  # a user that no job here has


SERVERS = []  # all that were started: those that a failed case has left are ended


def served(directory=None, *flags, environment=None):
    directory = directory or fresh_directory()
    os.chmod(directory, 0o711)
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config, gpus="4xH100-SXM5-80GB", flags=flags)
    SERVERS.append(server)
    assert server.start(environment), server.tail()
    return server


def submit(server, script, **more):
    body = {"queue": "a", "gpus": 1, "cpus": 0.1, "memory": "128MiB", "command": ["bash", "-c", script], **more}
    return server.ask("POST", "/v1/jobs", body)["id"]


def output(server, job, task=0):
    folder = os.path.join(server.data, "jobs", str(job), "attempt-1", f"task-{task}")
    if not os.path.isdir(folder):
        return ""
    return "".join(open(os.path.join(folder, name)).read() for name in sorted(os.listdir(folder)) if name.startswith("stdout"))


class Squatter:
    """A process of another user that listens on a port of loopback, answers nothing and keeps what it is sent."""

    def __init__(self, port):
        script = ("import socket, sys\n"
                  "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                  f"s.bind(('127.0.0.1', {port})); s.listen(); print('listens', flush=True)\n"
                  "while True:\n"
                  "    c, _ = s.accept(); print(c.recv(65536), flush=True); c.close()\n")
        self.process = subprocess.Popen(["setpriv", f"--reuid={JOB}", f"--regid={JOB}", "--clear-groups", "/usr/bin/python3", "-c", script],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline() == "listens\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def heard(self):
        """All that it was sent; it has ended then."""
        self.process.terminate()
        text = self.process.stdout.read()
        self.process.wait()
        return text


def cli(server, *words, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
    address = ["--server", f"http://127.0.0.1:{server.port}", "--token-file", os.path.join(server.data, "token")]
    return subprocess.run([berth_binary(), *address, *words], capture_output=True, text=True, env={**clean, **environment})


def who_takes_the_port_of_the_server_gets_no_token():
    server = served()
    server.stop()
    with Squatter(server.port) as squatter:
        said = cli(server, "jobs")
        server.flags += ["--port", str(server.port)]
        assert not server.start(), "the port was free"
        heard = squatter.heard()
    assert server.token not in heard and "Bearer" not in heard, heard
    assert said.returncode == 6, said
    assert f"uid {JOB} listens there, which is neither root nor you" in said.stderr, said.stderr
    assert "BERTH_SERVER_USER" in said.stderr, said.stderr
    assert server.process.returncode == 74, server.process.returncode
    assert f"bind: Address already in use (a process of uid {JOB} listens there, which is not this server's user" in server.tail(), server.tail()
    with Squatter(server.port) as squatter:  # one that is named gets it, as a server that runs as another user has to
        cli(server, "jobs", BERTH_SERVER_USER=str(JOB))
        assert server.token in squatter.heard()
    assert server.start(), server.tail()
    assert cli(server, "jobs").returncode == 0
    discard(server)


def a_log_that_was_taken_away_ends_the_server_and_acknowledges_nothing():
    for name in ("log.db", "log.db-wal"):
        server = served()
        kept = submit(server, "true")
        ended(server, kept)
        os.rename(os.path.join(server.data, name), os.path.join(server.directory, "aside"))
        try:
            lost = submit(server, "true")
        except (Problem, OSError):
            lost = None
        assert lost is None, f"job {lost} was acknowledged without {name}"
        assert server.process.wait(60) == 74, server.tail()
        assert f"{name} was removed while the server had it open" in server.tail(), server.tail()
        os.rename(os.path.join(server.directory, "aside"), os.path.join(server.data, name))
        assert server.start(), server.tail()
        assert server.ask("GET", f"/v1/jobs/{kept}")["outcome"] == "succeeded"
        discard(server)


def two_servers_of_root_give_no_uid_twice():
    first = served()
    second = served(environment={"BERTH_LOCK_DIR": first.directory})
    uids = []
    for server in (first, second):
        job = submit(server, "id -u", user="ann" if server is first else "mallory")
        ended(server, job)
        uids.append(output(server, job))
    assert uids == ["50000\n", "50001\n"], uids
    discard(second)
    discard(first)


def a_copy_of_a_data_directory_is_refused_while_the_first_is_served():
    server = served()
    job = submit(server, "echo begun; exec sleep 1000")
    eventually("the output of the job: nothing in the directory changes any more", lambda: output(server, job))
    copy = Server(fresh_directory(), server.config, gpus="4xH100-SXM5-80GB")
    SERVERS.append(copy)
    shutil.copytree(server.data, copy.data, symlinks=True, ignore=lambda folder, names: [n for n in names if n in ("doorbell", "berth.sock", "shell")])
    assert not copy.start({"BERTH_LOCK_DIR": server.directory}), "it was served"
    assert copy.process.returncode == 4, copy.process.returncode
    assert "is a copy of one that another server of this machine serves" in copy.tail(), copy.tail()
    assert server.ask("GET", f"/v1/jobs/{job}")["phase"] == "running"
    server.kill()
    assert server.start(), "a server's own lock is free when it has ended: " + server.tail()
    assert server.ask("GET", f"/v1/jobs/{job}")["phase"] == "running"
    server.ask("DELETE", f"/v1/jobs/{job}")
    ended(server, job)
    discard(server)
    shutil.rmtree(copy.directory)


def copy_of(server, name):
    """A copy of its data directory, with a server of it that has not started."""
    copy = Server(fresh_directory(), server.config, gpus="4xH100-SXM5-80GB")
    SERVERS.append(copy)
    os.chmod(copy.directory, 0o711)
    shutil.copytree(os.path.join(server.directory, name), copy.data, symlinks=True)
    return copy


def a_task_that_no_log_knows_is_ended_at_the_start_and_no_other_server_s():
    """A task that a server starts after its directory was copied, and that outlives it, holds the GPUs of the copy's jobs."""
    other, first = served(), served()
    theirs = submit(other, "exec sleep 1000")
    first.stop()
    shutil.copytree(first.data, os.path.join(first.directory, "before"), symlinks=True,
                    ignore=lambda folder, names: [n for n in names if n in ("doorbell", "berth.sock", "shell")])
    assert first.start(), first.tail()
    late = submit(first, "exec sleep 1000")
    for server, job in ((other, theirs), (first, late)):
        server.wait_phase(job, "running")
        eventually("the task runs", lambda server=server: processes_of(server.data))
    first.kill()
    assert processes_of(first.data), "a task outlives its server"
    copy = copy_of(first, "before")
    assert copy.start({"BERTH_LOCK_DIR": first.directory}), copy.tail()
    assert not processes_of(first.data), "the task of the dead server runs on"
    said = "1 task that this data directory does not know ran here at the start and was ended"
    assert said in copy.tail(), copy.tail()
    assert said in " ".join(copy.ask("GET", "/v1/cluster")["warnings"])
    assert processes_of(other.data) and other.ask("GET", f"/v1/jobs/{theirs}")["phase"] == "running"
    copy.kill()
    shutil.rmtree(copy.directory)
    other.ask("DELETE", f"/v1/jobs/{theirs}")
    ended(other, theirs)
    discard(other)
    discard(first)


def files_of_log(folder):
    return [name for name in os.listdir(folder) if name.startswith(("log.db", "head", "checkpoint-"))]


def kept_log(server):
    """A copy of the log of a server that has stopped."""
    backup = os.path.join(server.directory, "backup")
    os.mkdir(backup)
    for name in files_of_log(server.data):
        shutil.copy(os.path.join(server.data, name), backup)
    return backup


def put_back(server, backup):
    for name in files_of_log(server.data):
        os.remove(os.path.join(server.data, name))
    for name in files_of_log(backup):
        shutil.copy(os.path.join(backup, name), server.data)


def a_task_that_an_older_log_does_not_know_is_ended_at_the_start():
    """A log that was restored from a backup beside the run directory of today."""
    server = served()
    server.stop()
    backup = kept_log(server)
    assert server.start(), server.tail()
    late = submit(server, "exec sleep 1000")
    eventually("the task runs", lambda: processes_of(server.data))
    server.kill()
    put_back(server, backup)
    assert server.start(), server.tail()
    eventually("the task of the lost log has ended", lambda: not processes_of(server.data))
    said = "1 task that the event log does not know ran here at the start and was ended"
    eventually("it is told", lambda: said in " ".join(server.ask("GET", "/v1/cluster")["warnings"]))
    again = submit(server, "echo again", gpus=4)
    assert again == late, "the log knows no such job"
    assert ended(server, again)["outcome"] == "succeeded", "its record has gone with it"
    discard(server)


def parent_of(process):
    with open(f"/proc/{process}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def a_job_that_waits_in_an_older_log_starts_behind_its_own_later_task():
    """In the log that is kept it waits; since then it has started, so its next start has the name of the task that runs."""
    server = served()
    blocks = submit(server, "exec sleep 1000", gpus=4)
    server.wait_phase(blocks, "running")
    late = submit(server, "mkdir $BERTH_CHECKPOINT_DIR/once && exec sleep 1000; echo again", gpus=4)
    server.stop()
    backup = kept_log(server)
    assert server.start(), server.tail()
    server.ask("DELETE", f"/v1/jobs/{blocks}")
    server.wait_phase(late, "running")
    eventually("the later task runs", lambda: os.path.isdir(os.path.join(server.data, "jobs", str(late), "checkpoint", "once")))
    server.kill()
    supervisor, = {parent_of(process) for process in processes_of(server.data)}
    os.kill(supervisor, signal.SIGSTOP)  # so that its task has not ended when the start comes
    put_back(server, backup)
    assert server.start(), server.tail()
    server.ask("DELETE", f"/v1/jobs/{blocks}")
    eventually("its start is decided", lambda: server.ask("GET", f"/v1/jobs/{late}")["attempts"] == 1)
    os.kill(supervisor, signal.SIGCONT)
    assert ended(server, late)["outcome"] == "succeeded", "its start is not taken for that of the task that is ended"
    assert output(server, late).strip() == "again", output(server, late)
    discard(server)


def a_member_cannot_use_up_the_reserve_of_the_disk():
    directory = fresh_directory()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "berth-doors", directory], capture_output=True).returncode != 0:
        print("SKIPPED: no file system can be mounted here")
        return
    try:
        server = served(directory)
        runs, job = submit(server, "exec sleep 1000", gpus=4), submit(server, "true", gpus=4)
        server.ask("POST", f"/v1/jobs/{job}/hold")
        with open(os.path.join(directory, "ballast"), "wb") as file:
            file.write(b"x" * (52 << 20))
        for method, path, body in (("POST", "/v1/jobs", {"queue": "a", "gpus": 1, "cpus": 0.1, "command": ["true"]}),
                                   ("PUT", f"/v1/jobs/{job}/priority", {"priority": 7}),
                                   ("POST", f"/v1/jobs/{job}/release", None)):
            try:
                server.ask(method, path, body)
                assert False, f"{method} {path} was taken"
            except Problem as problem:
                assert problem.status == 503 and "no job or change is taken" in str(problem), problem
        for one in (runs, job):
            server.ask("DELETE", f"/v1/jobs/{one}")
            assert ended(server, one)["outcome"] == "cancelled"
        discard(server)
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


def a_gang_gets_another_port_where_somebody_sits_on_its_own():
    server = served()
    first = submit(server, "echo $MASTER_PORT", tasks=2)
    ended(server, first)
    port = int(output(server, first))
    with Squatter(port):
        gang = submit(server, "echo $MASTER_PORT", tasks=2)
        ended(server, gang)
    taken = {output(server, gang, task) for task in (0, 1)}
    assert len(taken) == 1 and int(taken.pop()) != port, (port, taken)
    discard(server)


def damaged_keys_are_told_by_verify_and_by_the_start():
    server = served()
    server.stop()
    keys = os.path.join(server.data, "signing-keys.json")
    with open(keys, "w") as file:
        file.write("{}")
    verify = subprocess.run([berth_binary(), "verify", server.data], capture_output=True, text=True)
    assert verify.returncode != 0 and "signing-keys.json" in verify.stderr and "remove it" in verify.stderr, verify
    assert "Restore a backup" not in verify.stderr, "the log is sound"
    assert not server.start(), "it was served"
    assert "signing-keys.json" in server.tail() and "remove it" in server.tail(), server.tail()
    os.remove(keys)
    verify = subprocess.run([berth_binary(), "verify", server.data], capture_output=True, text=True)
    assert verify.returncode == 0, verify
    assert server.start(), server.tail()
    discard(server)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: only root has users to be kept apart from")
        sys.exit(77)
    code = tally.run([
        who_takes_the_port_of_the_server_gets_no_token,
        a_log_that_was_taken_away_ends_the_server_and_acknowledges_nothing,
        two_servers_of_root_give_no_uid_twice,
        a_copy_of_a_data_directory_is_refused_while_the_first_is_served,
        a_task_that_no_log_knows_is_ended_at_the_start_and_no_other_server_s,
        a_task_that_an_older_log_does_not_know_is_ended_at_the_start,
        a_job_that_waits_in_an_older_log_starts_behind_its_own_later_task,
        a_member_cannot_use_up_the_reserve_of_the_disk,
        a_gang_gets_another_port_where_somebody_sits_on_its_own,
        damaged_keys_are_told_by_verify_and_by_the_start,
    ])
    for server in SERVERS:
        if server.process:
            server.kill()
    sys.exit(code)

#!/usr/bin/env python3
"""Tasks as users of their own, where the server is root: who runs as whom, and what a hostile job of one submitter can do to
the server, to its own records and to the job of another submitter. Nothing."""
import os
import pwd
import shutil
import signal
import subprocess
import sys

from hostile_test import CONFIG, discard, ended
from patience import eventually
import tally
from server import Server, berth_binary, for_jobs, fresh_directory

DAEMON = pwd.getpwnam("daemon").pw_uid
HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile_task.py")


class Separating(Server):
    def __init__(self, *flags):
        super().__init__(fresh_directory(), gpus="4xH100-SXM5-80GB", flags=flags)
        os.chmod(self.directory, 0o711)
        self.config = os.path.join(self.directory, "cluster.yaml")
        with open(self.config, "w") as file:
            file.write(CONFIG)
        assert self.start(), self.tail()

    def submit(self, user, command, **more):
        words = command if isinstance(command, list) else ["bash", "-c", command]
        body = {"queue": "a", "user": user, "gpus": 1, "cpus": 0.1, "memory": "256MiB", "command": words, **more}
        return self.ask("POST", "/v1/jobs", body)["id"]

    def output(self, job, stream="stdout", attempt=1):
        folder = os.path.join(self.data, "jobs", str(job), f"attempt-{attempt}", "task-0")
        if not os.path.isdir(folder):
            return ""
        files = sorted(name for name in os.listdir(folder) if name.startswith(stream))
        return "".join(open(os.path.join(folder, name), errors="replace").read() for name in files)

    def said(self, user, command, **more):
        """What a job that has to succeed prints."""
        job = self.submit(user, command, **more)
        seen = ended(self, job)
        assert seen["outcome"] == "succeeded", (seen, self.output(job, "stderr"))
        return self.output(job).strip()

    def message(self, job):
        return ended(self, job)["past"][-1]["message"]


def each_submitter_gets_a_uid_of_its_own_and_keeps_it():
    server = Separating()
    ann, ben = server.said("ann", "id -u; id -g; id -G"), server.said("ben", "id -u; id -g; id -G")
    assert ann == "50000\n50000\n50000" and ben == "50001\n50001\n50001", (ann, ben)
    assert server.said("root", "id -u") == "50002", "root"
    assert server.said("daemon", "id -u") == "50003", "an account of the system"
    server.kill()
    assert server.start(), server.tail()
    assert server.said("ben", "id -u") == "50001"
    assert "a uid of 50000 to 59999 for each user" in server.tail()
    assert not any("not kept apart" in one for one in server.ask("GET", "/v1/cluster")["warnings"])
    discard(server)


def a_task_has_the_environment_of_its_user():
    server = Separating()
    said = server.said("ann", 'env; touch $HOME/x $BERTH_CHECKPOINT_DIR/y; grep NoNewPrivs /proc/self/status; echo to > /dev/stdout')
    for line in ("USER=ann", "LOGNAME=ann", "SHELL=/bin/sh", f"HOME={server.data}/jobs/1/home", "NoNewPrivs:\t1", "to"):
        assert line in said.splitlines(), (line, said)
    assert "SECRET_OF_THE_SERVER" not in said and server.token not in said
    discard(server)


def a_named_account_runs_the_tasks_of_users_who_have_none():
    server = Separating("--task-user", "daemon")
    assert server.said("ann", "id -u; echo $USER") == f"{DAEMON}\ndaemon"
    assert server.said("root", "id -u") == str(DAEMON)
    discard(server)


def an_account_of_a_person_runs_the_tasks_of_its_name():
    directory = fresh_directory()
    passwd = os.path.join(directory, "passwd")
    shutil.copy("/etc/passwd", passwd)
    with open(passwd, "a") as file:
        file.write(f"ann:x:1234:1234::{directory}:/bin/bash\nsys2:x:200:200::/:/bin/sh\ntoor:x:0:0::/root:/bin/sh\n")
    program = os.path.join(directory, "berth")  # a server that sees these accounts, and nothing else does
    with open(program, "w") as file:
        file.write(f'#!/bin/sh\nexec unshare -m sh -c \'mount --bind {passwd} /etc/passwd && exec "$0" "$@"\' {berth_binary()} "$@"\n')
    os.chmod(program, 0o755)
    if subprocess.run([program, "--version"], capture_output=True).returncode != 0:
        print("SKIPPED: no file can be mounted over /etc/passwd here")
        return
    before = os.environ.get("BERTH")
    os.environ["BERTH"] = program
    try:
        server = Separating()
    finally:
        os.environ.pop("BERTH") if before is None else os.environ.update(BERTH=before)
    said = server.said("ann", "id -u; id -G; echo $HOME $SHELL $USER")
    assert said == f"1234\n1234\n{directory} /bin/bash ann", said
    for other in ("sys2", "toor"):
        assert int(server.said(other, "id -u")) >= 50000, other
    discard(server)
    shutil.rmtree(directory)


def a_place_that_the_user_cannot_reach_is_named():
    server = Separating()
    closed = os.path.join(server.directory, "closed")
    os.makedirs(os.path.join(closed, "work"))
    os.chmod(closed, 0o700)
    shutil.copy("/bin/true", os.path.join(closed, "work", "true"))
    message = server.message(server.submit("ann", "true", workdir=os.path.join(closed, "work")))
    assert "working directory" in message and f"user ann (uid 50000) may not enter {closed};" in message, message
    message = server.message(server.submit("ann", [os.path.join(closed, "work", "true")]))
    assert "cannot execute" in message and f"may not enter {closed};" in message, message
    os.chmod(server.directory, 0o700)
    message = server.message(server.submit("ann", "true"))
    assert "checkpoint directory" in message and f"may not enter {server.directory};" in message, message
    discard(server)


def wrong_flags_are_refused_before_a_log_is_made():
    for flags, says in ((["--task-user", "root"], "no task runs as root"), (["--task-user", "no-such-user"], "has no account"),
                        (["--task-uid-range", "0-10"], "those of the system"), (["--task-uid-range", "70000-60000"], "FROM-TO"),
                        (["--task-uid-range", "65000-66000"], "nobody's"), (["--task-uid-range", "x"], "FROM-TO"),
                        (["--task-user", "daemon", "--task-uid-range", "50000-50001"], "give one of them")):
        directory = fresh_directory()
        run = subprocess.run([berth_binary(), "serve", "--data", directory + "/data", *flags], capture_output=True, text=True)
        assert run.returncode == 2 and says in run.stderr, (flags, run)
        assert not os.path.exists(directory + "/data/log.db")
        shutil.rmtree(directory)


def a_range_that_is_used_up_refuses_the_next_user():
    server = Separating("--task-uid-range", "50010-50010")
    assert server.said("ann", "id -u") == "50010"
    assert "is free for user ben" in server.message(server.submit("ben", "true"))
    assert server.said("ann", "id -u") == "50010"
    discard(server)


def a_job_goes_on_from_its_checkpoint_when_its_user_has_another_uid():
    server = Separating()
    job = server.submit("ann", 'cat $BERTH_CHECKPOINT_DIR/step && echo two >> $BERTH_CHECKPOINT_DIR/step && exit 0; '
                               'echo one > $BERTH_CHECKPOINT_DIR/step; echo $PPID; sleep 600')
    supervisor = int(eventually("the first attempt speaks", lambda: server.output(job).strip()))
    server.kill()
    server.flags = ["--task-user", "daemon"]
    assert server.start(), server.tail()
    os.kill(supervisor, signal.SIGKILL)
    assert ended(server, job)["outcome"] == "succeeded", server.ask("GET", f"/v1/jobs/{job}")
    step = os.path.join(server.data, "jobs", str(job), "checkpoint", "step")
    assert open(step).read() == "one\ntwo\n" and os.stat(step).st_uid == DAEMON
    discard(server)


def a_hostile_job_does_nothing_to_anybody_else():
    server = Separating()
    victim = server.submit("ann", 'echo mine > $BERTH_CHECKPOINT_DIR/weights; echo up $$ $PPID; while [ ! -e $HOME/go ]; do sleep 0.1; done; '
                                  'cat $BERTH_CHECKPOINT_DIR/weights; exit 7', env={"SECRET": "of-ann"})
    up = eventually("the victim speaks", lambda: server.output(victim).split())
    process, supervisor = up[1], up[2]
    program = for_jobs(server.directory, HOSTILE)
    os.chmod(shutil.copy("/usr/bin/id", os.path.join(server.directory, "id-of-root")), 0o4755)
    hostile = server.submit("ben", ["/usr/bin/python3", program, server.data, str(server.port), str(victim), process, supervisor,
                                    str(server.process.pid)])
    seen = ended(server, hostile)
    said = server.output(hostile)
    lines = said.splitlines()
    breached = [line for line in lines if not line.startswith("contained:")]
    assert seen["outcome"] == "succeeded" and not breached, (breached, seen, server.output(hostile, "stderr"))
    assert len(lines) == 36, said
    for secret in (server.token, "of-ann", "mine\n"):
        assert secret not in said, secret
    assert server.process.poll() is None, server.tail()
    assert server.ask("GET", f"/v1/jobs/{victim}")["phase"] == "running"
    with open(os.path.join(server.data, "jobs", str(victim), "home", "go"), "w"):
        pass
    assert ended(server, victim)["past"][-1]["code"] == 7
    assert server.output(victim).splitlines()[-1] == "mine"
    assert not server.ask("GET", f"/v1/jobs/{victim}").get("checkpoint_step")
    assert os.stat(os.path.join(server.data, "token")).st_mode & 0o777 == 0o600
    discard(server)


def an_ack_that_is_a_link_to_a_file_of_another_says_nothing_of_it():
    server = Separating()
    secret = os.path.join(server.directory, "secret")
    with open(secret, "w") as file:
        file.write('{"attempt": 1, "step": 4711}')
    job = server.submit("ann", "sleep 2", checkpoint={"on_signal": True})
    folder = os.path.join(server.data, "jobs", str(job), "checkpoint")
    eventually("its directory is there", lambda: os.path.isdir(folder))
    os.link(secret, os.path.join(folder, "ack.json"))  # as on a machine whose kernel lets everybody link everything
    ended(server, job)
    assert "belongs to another user" in server.output(job, "stderr"), server.output(job, "stderr")
    assert "4711" not in str(server.ask("GET", f"/v1/jobs/{job}"))
    discard(server)


def a_server_that_is_not_root_says_that_tasks_are_not_kept_apart():
    server = Server(fresh_directory(), flags=["--task-user", "nobody"])
    server.run_as(DAEMON)
    assert not server.start() and "for a server that is root" in server.tail(), server.tail()
    server.flags = []
    assert server.start(), server.tail()
    assert "tasks are not kept apart" in server.tail(), server.tail()
    assert any("tasks are not kept apart" in one for one in server.ask("GET", "/v1/cluster")["warnings"])
    server.stop()
    shutil.rmtree(server.directory)


def main():
    if os.geteuid() != 0:
        print("SKIPPED: only root can run tasks as other users")
        sys.exit(77)
    sys.exit(tally.run([case for name, case in globals().items()
                        if callable(case) and name.split("_")[0] in ("a", "an", "each", "wrong")]))


if __name__ == "__main__":
    main()

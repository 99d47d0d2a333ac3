#!/usr/bin/env python3
"""Shells in running jobs: `berth exec`, `berth run -it` and `berth attach` against a real server, from a real pseudo-terminal; and
who may not open one."""
import json
import os
import subprocess
import sys

import tally
from patience import eventually, stretched
from server import Problem, berth_binary, discard, processes_of, start_with
from terminal import Terminal

CONFIG = """cluster: test
queues:
  red: {}
  blue: {}
  vault: {shell: false, queues: {deep: {}}}
"""
WAITS = ["sh", "-c", "until test -e $BERTH_CHECKPOINT_DIR/end; do sleep 0.05; done"]


class World:
    def __init__(self):
        self.server = start_with(CONFIG)

    def environment(self, token=None):
        given = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{self.server.port}", "TERM": "dumb",
                 "BERTH_TOKEN": token or self.server.token}
        given.pop("BERTH_TOKEN_FILE", None)
        return given

    def terminal(self, *words, **more):
        return Terminal(self.environment(), *words, **more)

    def berth(self, *words, token=None, stdin=""):
        return subprocess.run([berth_binary(), *words], env=self.environment(token), input=stdin, capture_output=True, text=True,
                              timeout=stretched(60), check=False)

    def token(self, name, role, queue):
        body = {"name": name, "role": role, "queue": queue, "expires_in_s": 3600}
        return self.server.ask("POST", "/v1/tokens", body)["token"]

    def running(self, command=None, queue="red", **more):
        body = {"queue": queue, "cpus": 0.1, "memory": "64MiB", "command": command or WAITS, **more}
        job = self.server.ask("POST", "/v1/jobs", body)["id"]
        eventually(f"job {job} runs", lambda: self.server.job(job)["phase"] == "running" and self.is_up(job))
        return job

    def is_up(self, job):
        return any(one["kind"] == "task-started" and one["job"] == job for one in self.server.all_events())

    def shells(self, kind):
        return [event for event in self.server.all_events() if event["kind"] == kind]

    def marked(self, mark):
        """Processes of tasks with this word in their environment or arguments."""
        found = []
        for pid in processes_of(self.server.data):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(pid)
            except OSError:
                pass
        return found


def a_command_runs_as_the_job_does():
    world = World()
    job = world.running(env={"OF_THE_JOB": "yes"}, gpus=1)
    user = world.berth("logs", str(world.server.wait_phase(
        world.server.ask("POST", "/v1/jobs", {"queue": "red", "cpus": 0.1, "command": ["id", "-u"]})["id"], "finished")["id"]))
    done = world.berth("exec", str(job), "--", "sh", "-c",
                       "id -u; echo $OF_THE_JOB $BERTH_JOB $CUDA_VISIBLE_DEVICES;\nread x || echo no-input; echo err >&2; exit 3")
    lines = done.stdout.splitlines()
    assert done.returncode == 3 and done.stderr == "err\n", done
    assert lines[0] == user.stdout.strip() and lines[1].startswith(f"yes {job} ") and len(lines[1].split()) == 3 and lines[2] == "no-input", done
    piped = world.berth("exec", str(job), "-i", "--", "wc", "-c", stdin="x" * 2_000_000)
    assert (piped.returncode, piped.stdout.strip()) == (0, "2000000"), piped
    large = world.berth("exec", str(job), "--", "head", "-c", "3000000", "/dev/zero")
    assert (large.returncode, len(large.stdout)) == (0, 3_000_000), large.stderr
    missing = world.berth("exec", str(job), "--", "/no-such-shell")
    assert missing.returncode == 127 and "cannot execute /no-such-shell" in missing.stderr, missing
    discard(world.server)


def a_terminal_has_its_size_its_keys_and_its_exit_code():
    world = World()
    job = world.running()
    shell = world.terminal("exec", str(job), "-it", "--", "sh", size=(43, 132))
    shell.ask("tty -s && stty size; echo $TERM$((1+1))", "43 132\r\ndumb2")
    shell.resize(20, 90)
    shell.ask("until test \"$(stty size)\" = '20 90'; do sleep 0.05; done; echo re''sized", "resized")
    shell.ask("trap 'echo inter''rupted; exit 7' INT; echo rea''dy; while :; do sleep 0.05; done", "ready")
    shell.type("\x03")
    assert shell.end() == 7 and b"interrupted" in shell.seen, shell.seen
    last = world.shells("shell-ended")[-1]
    assert (last["code"], last["program"]) == (7, "sh"), last
    discard(world.server)


def what_the_terminal_leaves_behind_is_ended():
    world = World()
    job = world.running()
    shell = world.terminal("exec", str(job), "-it", "--", "sh", "-c", "echo rea''dy; sleep 4711; sleep 1")
    shell.see("ready")
    assert world.marked("4711")
    shell.kill()
    eventually("the shell has got SIGHUP", lambda: not world.marked("4711"))
    eventually("its end is in the log", lambda: world.shells("shell-ended"))
    assert "went away" in world.shells("shell-ended")[0]["message"]
    again = world.terminal("exec", str(job), "-it", "--", "sh", "-c", "echo rea''dy; sleep 4712; sleep 1")
    again.see("ready")
    world.server.ask("DELETE", f"/v1/jobs/{job}")
    assert again.end() in (129, 137, 143) and b"the task has ended" in again.seen, again.seen
    discard(world.server)


def an_interactive_job_is_gone_with_its_shell():
    world = World()
    shell = world.terminal("run", "-it", "--queue", "red", "--cpus", "0.1", "--", "sh")
    shell.ask("echo in-$BERTH_JOB-$TERM", "in-1-dumb")
    shell.type("exit 5\n")
    assert shell.end() == 5, shell.seen
    job = world.server.wait_phase(1, "finished")
    assert (job["kind"], job["outcome"], job["past"][-1]["code"]) == ("interactive", "failed", 5), job
    assert "in-1-dumb" in world.berth("logs", "1").stdout
    good = world.terminal("run", "-it", "--queue", "red", "--cpus", "0.1", "--", "echo", "quick-words")
    assert good.end() == 0 and b"quick-words" in good.seen, good.seen
    assert world.server.wait_phase(2, "finished")["outcome"] == "succeeded"
    refused = world.berth("run", "-it", "--queue", "red", "--", "sh")
    assert refused.returncode == 2 and "needs a terminal" in refused.stderr, refused
    discard(world.server)


def a_terminal_is_taken_over_from_its_run():
    world = World()
    shell = world.terminal("run", "-it", "--queue", "red", "--cpus", "0.1", "--", "sh")
    shell.ask("x=kept; echo be''gun", "begun")
    taker = world.terminal("attach", "1")
    taker.ask("echo still-$x", "still-kept")
    assert shell.end() == 4 and b"attached elsewhere" in shell.seen, (shell.code, shell.seen)
    taker.type("exit 3\n")
    assert taker.end() == 3, taker.seen
    discard(world.server)


def an_interactive_job_outlives_its_terminal_and_the_server():
    world = World()
    shell = world.terminal("run", "-it", "--queue", "red", "--cpus", "0.1", "--", "sh")
    shell.ask("x=kept; echo be''gun", "begun")
    shell.kill()
    second = world.terminal("attach", "1")
    second.ask("echo still-$x", "still-kept")
    world.server.kill()
    assert second.end() == 5 and b"berth attach 1" in second.seen, (second.code, second.seen)
    assert world.server.start(), world.server.tail()
    third = world.terminal("attach", "1")
    third.ask("echo again-$x", "again-kept")
    taker = world.terminal("attach", "1")
    taker.see("again-kept")
    assert third.end() == 4 and b"attached elsewhere" in third.seen, third.seen
    assert world.berth("cancel", "1").returncode == 0
    assert taker.end() == 129, taker.seen  # SIGHUP: a shell does not heed SIGTERM
    assert world.server.wait_phase(1, "finished")["outcome"] == "cancelled"
    discard(world.server)


def who_may_not_open_a_shell_is_told_and_audited():
    world = World()
    ann, bob = world.token("ann", "member", "red"), world.token("bob", "member", "red")
    lea, ops = world.token("lea", "lead", "red"), world.token("ops", "operator", "")
    job = world.server.ask("POST", "/v1/jobs", {"queue": "red", "cpus": 0.1, "command": WAITS},
                           {"Authorization": "Bearer " + ann})["id"]
    eventually("it runs", lambda: world.is_up(job))
    assert world.berth("exec", str(job), "--", "true", token=ann).returncode == 0
    assert world.berth("exec", str(job), "--", "echo", "a-secret").stdout == "a-secret\n"  # an admin
    hidden = world.berth("exec", str(job), "--", "true", token=bob)
    assert hidden.returncode == 3 and "no such job" in hidden.stderr, hidden
    for token in (lea, ops):
        denied = world.berth("exec", str(job), "--", "true", token=token)
        assert denied.returncode == 6 and "may not open-shell" in denied.stderr, denied
    closed = world.running(queue="vault/deep")
    denied = world.berth("exec", str(closed), "--", "true")
    assert denied.returncode == 6 and "queue 'vault' opens no shells" in denied.stderr, denied
    eventually("both ends are written down", lambda: len(world.shells("shell-ended")) == 2)
    eventually("the denials are in the audit", lambda: len(
        [one for one in world.server.ask("GET", "/v1/audit?denied=true&limit=100")["items"] if one["verb"] == "open-shell"]) >= 3)
    entries = [one for one in world.server.ask("GET", "/v1/audit?limit=100")["items"] if one["verb"] == "open-shell"]
    opened = [one for one in entries if one["changes"] and "opened" in one["changes"][0]["after"]]
    assert [one["subject"] for one in opened] == ["token:ann", "admin"], entries
    assert opened[1]["object"] == "user:ann" and opened[1]["changes"][0]["after"] == "opened echo", opened
    assert "a-secret" not in json.dumps(world.server.all_events())
    discard(world.server)


def a_browser_opens_no_shell():
    world = World()
    job = world.running()
    path = f"/v1/jobs/{job}/exec?command=%5B%22true%22%5D"
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "v1.shell.berth"}

    def status(headers, path=path):
        try:
            return world.server.ask("GET", path, headers=headers)
        except Problem as problem:
            return problem.status
    assert status({**upgrade, "Origin": f"http://127.0.0.1:{world.server.port}"}) == 403
    assert status({**upgrade, "Authorization": "Bearer wrong"}) == 401
    assert status({}) == 426
    assert status({**upgrade, "Sec-WebSocket-Version": "8"}) == 426
    assert status({**upgrade, "Sec-WebSocket-Protocol": "chat"}) == 426
    for command in ("", "true", "%5B%5D", "%5B1%5D", "%5B%22%22%5D", "%7B%7D"):
        assert status(upgrade, f"/v1/jobs/{job}/exec?command={command}") == 400, command
    assert status(upgrade, f"/v1/jobs/{job}/attach") == 409
    assert status(upgrade, f"/v1/jobs/{job}/exec?command=%5B%22true%22%5D&task=5") == 404
    assert status(upgrade, "/v1/jobs/999/exec?command=%5B%22true%22%5D") == 404
    assert not world.shells("shell-opened")
    discard(world.server)


def a_job_that_does_not_run_has_no_shell():
    world = World()
    held = world.server.ask("POST", "/v1/jobs", {"queue": "red", "command": ["true"], "hold": True})["id"]
    told = world.berth("exec", str(held), "--", "true")
    assert told.returncode == 4 and "does not run now" in told.stderr, told
    over = world.server.ask("POST", "/v1/jobs", {"queue": "red", "command": ["true"]})["id"]
    world.server.wait_phase(over, "finished")
    told = world.berth("exec", str(over), "--", "true")
    assert told.returncode == 4 and "has finished" in told.stderr, told
    for words in (["exec", "1"], ["exec", "1", "-t", "--", "sh"], ["attach", "1"]):
        wrong = world.berth(*words)
        assert wrong.returncode == 2, wrong
    discard(world.server)


if __name__ == "__main__":
    sys.exit(tally.run([a_command_runs_as_the_job_does,
                        a_terminal_has_its_size_its_keys_and_its_exit_code,
                        what_the_terminal_leaves_behind_is_ended,
                        an_interactive_job_is_gone_with_its_shell,
                        a_terminal_is_taken_over_from_its_run,
                        an_interactive_job_outlives_its_terminal_and_the_server,
                        who_may_not_open_a_shell_is_told_and_audited,
                        a_browser_opens_no_shell,
                        a_job_that_does_not_run_has_no_shell]))

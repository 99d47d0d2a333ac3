#!/usr/bin/env python3
"""Each command of the command line against a real server with simulated GPUs: what it prints and how it exits."""
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
import urllib.error
import urllib.request

from patience import eventually, read_until, stretched
from server import Problem, Server, berth_binary, fresh_directory

CONFIG = """
cluster: test
gpu_models:
  H100-SXM5-80GB: {weight: 1.0, memory: 80GiB}
pools:
  - name: default
priority_classes:
  training: {value: 500, default: true}
  dev: 100
queues:
  a:
    guaranteed: {gpus: 4}
  b:
    guaranteed: {gpus: 4}
"""

checks = []


def check(rule):
    checks.append(rule)
    return rule


class Cli:
    def __init__(self, server, directory):
        self.server = server
        self.directory = directory
        self.environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}",
                            "BERTH_TOKEN_FILE": os.path.join(server.data, "token")}

    def start(self, *words, **more):
        return subprocess.Popen([berth_binary(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=self.directory, env={**self.environment, **more.pop("env", {})}, **more)

    def __call__(self, *words, code=0, env=None, text=None, errors=1):
        ran = subprocess.run([berth_binary(), *words], capture_output=True, text=True, cwd=self.directory, input=text,
                             env={**self.environment, **(env or {})}, timeout=stretched(120))
        expected = code if isinstance(code, tuple) else (code,)
        assert ran.returncode in expected, f"berth {' '.join(words)}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
        if ran.returncode >= 2:
            lines = ran.stderr.splitlines()
            assert all(line.startswith("berth: ") for line in lines) and len(lines) == errors, ran.stderr
        return ran.stdout

    def json_of(self, *words, **more):
        return json.loads(self(words[0], "-o", "json", *words[1:], **more))

    def json(self, *words):
        return json.loads(self(words[0], "-o", "json", *words[1:]))

    def submit(self, *words):
        return str(self.json("submit", *words)["id"])

    def wait(self, job, *phases):
        self.server.wait_phase(job, *phases)
        return self.json("job", job)


@check
def a_job_is_submitted_runs_and_tells_its_story(berth):
    said = berth("submit", "--queue", "a", "--name", "hello", "--tasks", "2", "--gpus", "1", "--time-limit", "2h", "--",
                 "sh", "-c", "for i in 1 2 3; do echo line $i of $RANK; done; echo oops >&2; pwd")
    job = said.split()[1]
    assert said == f"job {job} submitted\n", said
    assert berth.wait(job, "finished")["outcome"] == "succeeded"
    assert berth("logs", job).startswith("line 1 of"), berth("logs", job)
    assert berth("logs", job, "--tail", "1").strip() == os.path.realpath(berth.directory)
    assert berth("logs", "-f", job, "--task", "1", "--stderr") == "oops\n"
    story = berth("job", job)
    for part in ("submitted", "(simulated GPUs)", "attempt 1 started on n1 (2 GPUs)", "attempt 1 ended: succeeded", "finished: succeeded"):
        assert part in story, story
    assert "hello" in berth("jobs", "--all") and "hello" not in berth("jobs")
    assert [one["id"] for one in berth.json("jobs", "--all", "--name", "hello")] == [int(job)]
    assert "succeeded" in berth("jobs", "--all", "-o", "wide")
    assert "name: hello" in berth("job", job, "-o", "yaml")
    berth("submit", "--name", b"\xff", "--", "true", code=2)
    berth("jobs", "--queue", "nope", code=3)
    berth("jobs", "--parent", "999999", code=3)
    for more in ((), ("-f",), ("--stderr",), ("--tail", "3")):
        berth("logs", job, "--task", "2", *more, code=3)
    told = subprocess.run([berth_binary(), "logs", job, "--task", "9"], capture_output=True, text=True, env=berth.environment)
    assert told.stderr == f"berth: job {job} has no task 9; its tasks are 0 to 1\n", told


@check
def an_array_tells_its_elements_and_how_many_failed(berth):
    array = berth.submit("--queue", "a", "--kind", "array", "--array-size", "4", "--cpus", "1", "--name", "sweep", "--",
                         "sh", "-c", "test $ARRAY_INDEX != 2")
    done = berth.wait(array, "finished")
    assert done["outcome"] == "failed" and done["children"] == {"total": 4, "running": 0, "waiting": 0, "ended": 4, "failed": 1}, done
    told = berth("job", array)
    assert "elements    4: 0 running, 0 waiting, 4 ended, 1 of them failed" in told, told
    rows = [line.split() for line in told.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    assert sorted((row[0], row[2]) for row in rows) == [("0", "succeeded"), ("1", "succeeded"), ("2", "failed"), ("3", "succeeded")], told
    berth("logs", array, code=3)
    ran = berth.start("run", "--queue", "a", "--kind", "array", "--array-size", "2", "--cpus", "1", "--", "sleep", "1")
    _, err = ran.communicate(timeout=stretched(60))
    assert ran.returncode == 0 and "berth jobs --all --parent" in err and "attempt 0" not in err, err
    service = berth.submit("--queue", "a", "--kind", "service", "--tasks", "2", "--cpus", "1", "--", "sleep", "600")
    berth.wait(service, "running")
    eventually("both replicas run", lambda: berth.json("job", service)["children"]["running"] == 2)
    told = berth("job", service)
    assert "replicas    2: 2 running" in told and "REPLICA" in told and told.count("running") >= 4, told
    berth("cancel", service)
    berth.wait(service, "finished")


@check
def a_dependency_that_can_never_be_met_is_told_in_the_list(berth):
    failing = berth.submit("--queue", "a", "--cpus", "1", "--", "false")
    slow = berth.submit("--queue", "a", "--cpus", "1", "--", "sleep", "600")
    berth.wait(failing, "finished")
    never = berth.submit("--queue", "a", "--cpus", "1", "--afterok", failing, "--name", "in-vain", "--", "true")
    later = berth.submit("--queue", "a", "--cpus", "1", "--afterok", slow, "--name", "patient", "--", "true")
    reasons = {job["name"]: job.get("reason") for job in berth.json("jobs")}
    assert (reasons["in-vain"], reasons["patient"]) == ("dependency-never", "dependency"), reasons
    listed = berth("jobs")
    assert "pending (dependency-never)" in listed and "pending (dependency)" in listed, listed
    assert berth.json("why", never)["never"]
    for job in (never, later, slow):
        berth("cancel", job)
        berth.wait(job, "finished")


def slept(process):
    """How often a process of ours has gone to sleep: one that asks every now and then does so a few times each time."""
    with open(f"/proc/{process.pid}/status") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.M).group(1))


@check
def run_says_why_it_waits_once_although_the_numbers_change(berth):
    hogs = [berth.submit("--queue", "a", "--gpus", "2", "--", "sleep", "600") for _ in range(4)]
    for hog in hogs:
        berth.wait(hog, "running")
    ran = berth.start("run", "--queue", "a", "--gpus", "8", "--", "true")
    begin = read_until(ran.stderr, b" waits for 8 free GPUs")[0].decode()
    for hog in hogs:
        turns = slept(ran)
        eventually("it has asked again, with the numbers of now", lambda: ran.poll() is not None or slept(ran) > turns + 6)
        berth("cancel", hog)
        berth.wait(hog, "finished")
    err = begin + ran.communicate(timeout=stretched(60))[1]
    assert ran.returncode == 0 and err.count(" waits for 8 free GPUs") == 1, err


@check
def the_same_key_is_the_same_job(berth):
    words = ["submit", "--queue", "a", "--key", "once", "--"]
    first = berth(*words, "true").split()[1]
    assert berth(*words, "true") == f"job {first} was submitted before\n"
    berth(*words, "false", code=4)


@check
def a_document_and_flags_make_one_job(berth):
    document = "queue: a\nname: from-file\ncommand: [\"true\"]\npriority: dev\n"
    path = os.path.join(berth.directory, "job.yaml")
    with open(path, "w") as file:
        file.write(document)
    job = berth.json("job", berth.submit("-f", path, "--name", "from-flag", "--hold"))
    assert (job["name"], job["priority_class"], job["held"]) == ("from-flag", "dev", True), job
    piped = json.loads(berth("submit", "-f", "-", "-o", "json", text=document))
    assert piped["name"] == "from-file"
    berth("cancel", str(job["id"]))
    with open(path, "a") as file:
        file.write("gpuz: 1\n")
    berth("submit", "-f", path, code=2)


@check
def run_streams_and_exits_with_the_code_of_the_job(berth):
    ran = berth.start("run", "--queue", "a", "--gpus", "1", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    out, err = ran.communicate(timeout=stretched(60))
    assert ran.returncode == 7, (ran.returncode, err)
    assert out == "out\n", out
    assert "err\n" in err and "submitted" in err, err
    assert berth("run", "-q", "--queue", "a", "--", "echo", "quiet") == "quiet\n"
    both = berth("run", "-q", "--queue", "a", "--tasks", "2", "--", "sh", "-c", "echo from $BERTH_TASK; printf half")
    assert sorted(both.splitlines()) == ["[0] from 0", "[0] half", "[1] from 1", "[1] half"], both


@check
def an_interrupt_reaches_what_is_attached_and_a_second_cancels_it(berth):
    script = "trap 'echo interrupted; exit 9' INT; echo begun; while :; do sleep 0.1; done"
    ran = berth.start("run", "--queue", "a", "--", "sh", "-c", script)
    assert ran.stdout.readline() == "begun\n"
    ran.send_signal(signal.SIGINT)
    out, err = ran.communicate(timeout=stretched(60))
    assert out == "interrupted\n" and ran.returncode == 9 and "passed on" in err, (out, err, ran.returncode)
    ran = berth.start("run", "--queue", "a", "--name", "deaf", "--", "sh", "-c", "trap '' INT; echo begun; exec sleep 600")
    assert ran.stdout.readline() == "begun\n"
    ran.send_signal(signal.SIGINT)
    while "passed on" not in ran.stderr.readline():
        assert ran.poll() is None
    ran.send_signal(signal.SIGINT)
    _, err = ran.communicate(timeout=stretched(60))
    assert ran.returncode != 0 and "cancelling" in err, err
    job = berth.json("jobs", "--all", "--name", "deaf")[0]
    assert berth.wait(str(job["id"]), "finished")["outcome"] == "cancelled"


@check
def a_waiting_job_says_why_and_can_be_held_released_moved_and_cancelled(berth):
    big = berth.submit("--queue", "a", "--gpus", "8", "--", "sleep", "600")
    berth.wait(big, "running")
    job = berth.submit("--queue", "a", "--gpus", "8", "--name", "waits", "--", "true")
    assert job in berth("why", job) and berth.json("why", job)["code"] not in ("", "none")
    assert berth("hold", job) == f"job {job} held\n"
    assert berth.json("why", job)["code"] == "held"
    assert "held" in berth("jobs")
    assert berth("release", job) == f"job {job} released\n"
    assert berth("prioritize", job, "400") == f"job {job} has priority 400\n"
    assert berth.json("job", job)["priority"] == 400
    assert f"Job {job} waits for " in berth("job", job)
    nodes = berth.json("nodes")
    assert nodes[0]["gpus_free"] == 0 and nodes[0]["gpus"][0]["simulated"], nodes
    queue = berth.json("queues", "a")
    assert queue["usage"]["gpus"] == 8 and queue["pending"] == 1, queue
    assert "8" in berth("queues") and "0 of 8" in berth("nodes") and "in use" in berth("nodes", "n1")
    assert "8 in use" in berth("status")
    assert berth("cancel", job, big).count("is being cancelled") == 2
    berth.wait(big, "finished")
    berth.wait(job, "finished")
    berth("why", "99999", code=3)
    berth("cancel", "99999", code=3)
    berth("job", "seven", code=2)


@check
def jobs_are_chosen_by_what_they_are(berth):
    chosen = [berth.submit("--queue", "a", "--label", "run=7", "--hold", "--", "true") for _ in range(2)]
    other = berth.submit("--queue", "a", "--label", "run=8", "--hold", "--", "true")
    assert [str(job["id"]) for job in berth.json("jobs", "--me", "--label", "run=7")] == chosen
    assert berth.json("jobs", "--user", "nobody") == []
    told = berth.start("cancel", "--label", "run=7").communicate(timeout=stretched(60))[1]
    assert told == f"berth: this would cancel 2 jobs ({chosen[0]}, {chosen[1]}); add --yes\n", told
    assert "\n2 of 2 jobs\n" in berth("release", "--label", "run=7", "--yes")
    assert "1 of 1 job\n" in berth("cancel", "--label", "run=8", "--yes")
    berth("cancel", "--label", "run=9", "--yes", code=3)
    berth("cancel", other, "--me", code=2)
    assert berth("wait", *chosen).count(" succeeded\n") == 2
    listed = berth("jobs", "--since", "1h ago", "--label", "run=7")
    assert "GPU-HOURS" in listed and listed.count("succeeded") == 2, listed
    assert "run=7" in berth("jobs", "--since", "today", "--label", "run=7", "-o", "wide")
    assert berth.json("jobs", "--until", "1h ago", "--all") == []


@check
def waiting_for_jobs_ends_when_they_do(berth):
    good = berth.submit("--queue", "a", "--label", "wait=1", "--", "sh", "-c", "sleep 1")
    bad = berth.submit("--queue", "a", "--", "sh", "-c", "exit 3")
    assert berth("wait", "--label", "wait=1") == f"job {good} succeeded\n"
    assert berth("wait", good, bad, code=1).endswith(f"job {bad} failed: task 0: exited with code 3\n")
    long = berth.submit("--queue", "a", "--", "sleep", "600")
    assert berth("wait", long, "--until", "running") == f"job {long} runs\n"
    berth("wait", long, "--timeout", "1s", code=5)
    assert [job["outcome"] for job in berth.json("wait", good)] == ["succeeded"]
    berth("wait", code=2)
    berth("wait", "99999", code=3)
    berth("cancel", long)
    berth("wait", long, code=1)


@check
def a_dry_run_says_what_the_server_then_does(berth):
    words = ("--queue", "b", "--gpus", "4", "--name", "dry", "--", "sleep", "600")
    assert berth("submit", "--dry-run", *words) == \
        "would start now on n1 (4 GPUs), within the guarantees of its queue\nnothing was submitted\n"
    assert berth.json("jobs", "--name", "dry") == []
    hog = berth.submit("--queue", "a", "--gpus", "8", "--", "sleep", "600")
    berth.wait(hog, "running")
    foretold = berth.json("submit", "--dry-run", *words)
    assert foretold["phase"] == "pending" and [one["job"] for one in foretold["victims"]] == [int(hog)], foretold
    said = berth("submit", "--dry-run", *words)
    assert said.startswith("would start on n1 (4 GPUs) when 1 job has left:\n") and "loses " in said, said
    assert berth.json("job", hog)["phase"] == "running"
    waits = berth("submit", "--dry-run", "--queue", "a", "--gpus", "8", "--", "true")
    assert waits.startswith("would wait: ") and "would start now" not in waits.splitlines()[0], waits
    berth("submit", "--dry-run", "--queue", "nope", "--", "true", code=2)
    last = berth.submit("--queue", "a", "--gpus", "8", "--", "true")
    said = berth("prioritize", last, "1500", "--dry-run")
    assert f"job {last} with priority 1500: would start on n1 (8 GPUs) when 1 job has left:\n  job {hog} of admin" in said, said
    assert berth("prioritize", last, "training", "--dry-run").startswith(f"job {last} with priority 500: ")
    assert berth.json("job", last)["priority"] == 500
    said = berth("prioritize", last, "1500")
    assert said.startswith(f"job {last} has priority 1500; 1 job asked to leave for it:\n  job {hog} of admin"), said
    berth("wait", last)
    assert "nothing saved: " in berth("job", hog) and "GPU-seconds lost" in berth("job", hog), berth("job", hog)
    berth("cancel", hog)
    berth.wait(hog, "finished")
    berth("prioritize", last, "urgnt", code=2)


@check
def the_program_and_the_environment_are_those_of_the_caller(berth):
    tools = os.path.join(berth.directory, "tools")
    os.makedirs(tools, exist_ok=True)
    program = os.path.join(tools, "only-here")
    with open(program, "w") as file:
        file.write("#!/bin/sh\necho $0 $COLOUR\n")
    os.chmod(program, 0o755)
    here = {"PATH": tools + ":" + os.environ["PATH"], "COLOUR": "green"}
    assert berth("run", "-q", "--queue", "a", "--", "only-here", env=here) == program + "\n"
    assert berth("run", "-q", "--queue", "a", "--export", "COLOUR", "--", "only-here", env=here) == program + " green\n"
    in_a_shell = ("--", "sh", "-c", "only-here")
    assert berth("run", "-q", "--queue", "a", "--export", "ALL", *in_a_shell, env=here) == program + " green\n"
    plain = berth.start("run", "-q", "--queue", "a", *in_a_shell, env=here)
    plain.communicate(timeout=stretched(60))
    assert plain.returncode == 127, plain.returncode
    berth("submit", "--export", "ALL,NONE", "--", "true", code=2)


@check
def a_job_that_cannot_be_moved_says_why(berth):
    def refused(*words, code=4):
        ran = berth.start("move", *words)
        _, err = ran.communicate(timeout=stretched(60))
        assert ran.returncode == code and err.startswith("berth: "), (err, ran.returncode)
        return err

    job = berth.submit("--queue", "a", "--gpus", "1", "--", "sleep", "600")
    berth.wait(job, "running")
    assert "would lose" in refused(job)
    told = refused(job, "--lose-work")
    assert f"job {job} finds no places elsewhere now" in told and "(insufficient-resources)" in told, told
    assert "no such node" in refused(job, "--off", "n9", code=3)
    refused("99999", code=3)
    assert berth.json("job", job)["phase"] == "running"
    berth("cancel", job)
    berth.wait(job, "finished")
    assert "has finished" in refused(job)


@check
def nodes_are_cordoned_and_drained(berth):
    assert "cordoned" in berth("cordon", "n1")
    assert "cordoned" in berth("nodes")
    job = berth.submit("--queue", "a", "--gpus", "1", "--", "sleep", "600")
    assert berth.json("job", job)["phase"] == "pending"
    assert "cordoned" in berth("why", job).splitlines()[0], berth("why", job)
    berth("uncordon", "n1")
    berth.wait(job, "running")
    told = berth("drain", "n1")
    assert "draining" in told and f"job {job} of" in told and "--lose-work" in told, told
    assert berth.json("job", job)["phase"] == "running"  # it cannot save
    assert "lost is" in berth("drain", "n1", "--lose-work")
    story = berth.wait(job, "pending")
    assert story["past"][-1]["cause"] == "drain", story
    berth("uncordon", "n1")
    berth.wait(job, "running")
    assert "draining" in berth("drain", "n1", "--gone-in", "1h")
    assert berth.wait(job, "pending")["past"][-1]["cause"] == "spot-notice"
    berth("drain", "n1", "--gone-in", "soon", code=2)
    berth("uncordon", "n1")
    berth("cancel", job)
    berth("cordon", "nowhere", code=3)
    berth("fence", "n1", code=2)


@check
def what_is_simulated_beside_gpus_is_marked(berth):
    nodes = berth.json("nodes")
    cores, mib = os.sysconf("SC_NPROCESSORS_ONLN"), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") >> 20
    declared = [what for what, more in (("CPUs", nodes[0]["cpus"] > cores), ("memory", nodes[0]["memory_mib"] > mib)) if more]
    for words in (["nodes"], ["nodes", "n1"], ["nodes", "-o", "wide"]):
        note = f"n1: simulated {' and '.join(declared)}, more than its machine has"
        assert (note in berth(*words)) == bool(declared), (berth(*words), cores, mib)
    started = f"CPUs and memory are simulated with them: the node counts {nodes[0]['cpus']} CPUs"
    assert (started in berth.server.tail()) == bool(declared), berth.server.tail()


@check
def the_only_queue_needs_no_name(berth):
    refused = subprocess.run([berth_binary(), "submit", "--", "true"], capture_output=True, text=True, env=berth.environment)
    assert refused.returncode == 2 and "queue is missing; give one of a, b" in refused.stderr, refused
    directory = fresh_directory()
    config = os.path.join(directory, "one.yaml")
    with open(config, "w") as file:
        file.write("queues: {default: null}\n")
    alone = Server(directory, config)
    assert alone.start(), alone.tail()
    try:
        one = Cli(alone, directory)
        job = one.submit("--gpus", "1", "--", "true")
        assert one.wait(job, "finished")["queue"] == "default"  # its supervisor writes as long as it runs
    finally:
        alone.stop()
    shutil.rmtree(directory)


@check
def a_waiting_job_says_what_refuses_it(berth):
    holder = berth.submit("--queue", "a", "--gpus", "8", "--", "sleep", "600")
    berth.wait(holder, "running")
    waiting = berth.submit("--queue", "a", "--gpus", "2", "--", "true")
    held = berth.submit("--queue", "a", "--gpus", "2", "--hold", "--", "true")
    rows = {str(job["id"]): job for job in berth.json("jobs")}
    assert rows[waiting]["reason"] == "insufficient-resources" and rows[held]["reason"] == "held", rows
    assert "reason" not in rows[holder], rows
    assert "pending (insufficient-resources)" in berth("jobs") and "insufficient-resources" in berth("job", waiting)
    berth("cancel", holder, held)
    berth.wait(waiting, "finished")


@check
def a_start_that_is_refused_leaves_no_log(berth):
    data = os.path.join(berth.directory, "never")
    for words in (["--simulate-gpus", "8xfoo"], ["--node-name", "a b"], ["--config", "/nonexistent.yaml"], ["--config", berth.directory],
                  ["--port", "99999"]):
        ran = subprocess.run([berth_binary(), "serve", "--data", data, *words], capture_output=True, text=True, timeout=stretched(60))
        assert ran.returncode in (1, 2, 3) and not os.path.exists(data), (words, ran)
    assert "65535" in ran.stderr, ran.stderr


@check
def a_run_says_which_signal_ended_it(berth):
    ran = subprocess.run([berth_binary(), "run", "--queue", "a", "--", "sh", "-c", "kill -SEGV $$"], capture_output=True, text=True,
                         env=berth.environment, timeout=stretched(60))
    assert ran.returncode != 0 and "failed: task 0: ended by signal 11" in ran.stderr, ran


@check
def configuration_is_compared_and_applied(berth):
    path = os.path.join(berth.directory, "new.yaml")
    with open(path, "w") as file:
        file.write(berth("config"))
    assert berth("diff", "-f", path) == ""
    assert "nothing changes" in berth("apply", "-f", path)
    with open(path, "a") as file:
        file.write("\n")
    changed = berth("config").replace("  b:\n", "  c: {weight: 2}\n  b:\n", 1)
    with open(path, "w") as file:
        file.write(changed)
    difference = berth("diff", "-f", path, code=1)
    assert "queues.c" in difference, difference
    version = berth.json("apply", "-f", path)["version"]
    assert f"# version {version}\n" in berth("config")
    assert [queue["path"] for queue in berth.json("queues")] == ["a", "b", "c"]
    assert berth.json("config")["cluster"] == "test"
    with open(path, "w") as file:
        file.write("queues: {a: {gpus: 1}}\n")
    berth("apply", "-f", path, code=2)
    berth("diff", "-f", path, code=2)
    berth("diff", "-f", "/nonexistent.yaml", code=3)


@check
def a_difference_says_whom_it_meets_and_that_apply_would_refuse_it(berth):
    path = os.path.join(berth.directory, "less.yaml")
    job = berth.submit("--queue", "a", "--gpus", "3", "--", "sleep", "600")
    berth.wait(job, "running")

    def change(old, new):
        text = berth("config")
        assert old in text, text
        with open(path, "w") as file:
            file.write(text.replace(old, new, 1))
        return berth("diff", "-f", path, code=1)

    lowered = change("gpus: 4", "gpus: 2")
    assert f"queue a: job {job} would no longer be guaranteed" in lowered, lowered
    assert "would refuse" not in lowered
    told = berth.json_of("diff", "-f", path, code=1)
    assert told["consequences"] == [{"queue": "a", "become_borrowed": [int(job)], "become_guaranteed": [], "above_max": False}], told
    assert "refusal" not in told
    berth("apply", "-f", path, "--if-version", str(told["version"]))
    raised = change("gpus: 2", "gpus: 4")
    assert f"queue a: job {job} would become guaranteed" in raised, raised
    applied = berth("apply", "-f", path, "--diff")
    assert f"queue a: job {job} would become guaranteed" in applied and applied.endswith(f"applied: version {told['version'] + 2}\n"), applied
    assert json.loads(berth("apply", "-f", path, "--diff", "-o", "json"))["unchanged"]
    berth("apply", "-f", path, "--diff", "--if-version", "1", code=2)
    capped = change("gpus: 4\n", "gpus: 1\n    max:\n      gpus: 2\n")
    assert "queue a: more runs than the new max" in capped, capped
    gone = change("  a:\n", "  z:\n")
    refusal = "queue 'a' still has jobs; let them end or cancel them before removing it"
    assert f"apply would refuse it: {refusal}" in gone, gone
    berth("apply", "-f", path, code=4)
    berth("cancel", job)
    berth.wait(job, "finished")


@check
def a_queue_is_renamed_with_its_jobs(berth):
    path = os.path.join(berth.directory, "renamed.yaml")
    job = berth.submit("--queue", "a", "--gpus", "1", "--", "sleep", "600")
    berth.wait(job, "running")
    before = berth("config")

    def rename(old, new):
        with open(path, "w") as file:
            file.write(berth("config").replace(f"  {old}:\n", f"  {new}:\n    moved_from: {old}\n", 1))
        told = berth("diff", "-f", path, code=1).splitlines()
        assert told[0] == f"+ queues.{new}.moved_from: {old}" and told[1].startswith("version "), told
        berth("apply", "-f", path)

    rename("a", "renamed")
    assert berth.json("job", job)["spec"]["queue"] == "renamed"
    berth("submit", "--queue", "a", "--", "true", code=2)
    with open(path) as file:
        text = file.read().replace("  renamed:\n    moved_from: a\n", "  a:\n    moved_from: renamed\n", 1)
    with open(path, "w") as file:
        file.write(text)
    berth("apply", "-f", path)
    assert berth.json("job", job)["spec"]["queue"] == "a"
    with open(path, "w") as file:
        file.write(before)
    berth("apply", "-f", path)
    berth("cancel", job)
    berth.wait(job, "finished")


@check
def of_two_operators_who_change_one_version_the_second_is_told(berth):
    path = os.path.join(berth.directory, "mine.yaml")

    def change(name):
        with open(path, "w") as file:
            file.write(berth("config").replace("  b:\n", f"  {name}: {{weight: 2}}\n  b:\n", 1))

    change("mine")
    seen = berth.json_of("diff", "-f", path, code=1)["version"]
    assert f"version {seen} is in force" in berth("diff", "-f", path, code=1)
    change("theirs")
    assert berth.json("apply", "-f", path, "--if-version", str(seen))["version"] == seen + 1
    change("mine")
    berth("apply", "-f", path, "--if-version", str(seen), code=4)
    assert "mine" not in berth("config")
    token = open(os.path.join(berth.server.data, "token")).read().strip()

    def put(match):
        request = urllib.request.Request(f"http://127.0.0.1:{berth.server.port}/v1/config", open(path, "rb").read(), method="PUT",
                                         headers={"Authorization": f"Bearer {token}", "Content-Type": "application/yaml", "If-Match": match})
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, reply.headers["ETag"], None
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers["ETag"], json.load(refused)

    status, etag, problem = put(f'"{seen}"')
    assert (status, etag, problem["code"]) == (412, f'"{seen + 1}"', "precondition-failed"), problem
    assert f"version {seen + 1} of the configuration is in force, not {seen}" in problem["detail"]
    assert put("3")[0] == put('W/"3"')[0] == put('""')[0] == 400
    assert put(f'"{seen + 1}"')[:2] == (200, f'"{seen + 2}"')
    assert put("*")[0] == 200
    berth("apply", "-f", path, "--if-version", str(seen + 2))


@check
def files_are_checked_without_a_server_and_all_mistakes_told(berth):
    def write(name, text):
        with open(os.path.join(berth.directory, name), "w") as file:
            file.write(text)

    nowhere = {"BERTH_SERVER": "http://127.0.0.1:1", "BERTH_TOKEN_FILE": "/nonexistent"}
    write("good.yaml", CONFIG)
    write("job.yaml", "queue: a\ngpus: 1\ngpu_models: [H100-SXM5-80GB]\ncommand: x\n")
    assert berth("check", "good.yaml", "job.yaml", env=nowhere) == (
        "good.yaml: a configuration with 2 queues, no mistakes\njob.yaml: a job, no mistakes\n")
    write("bad.yaml", "queues:\n  a: {max: {gpus: -3}, wieght: 2}\nscheduling: {reclaim: yes}\n")
    said = berth("check", "bad.yaml", code=2, env=nowhere)
    lines = ["bad.yaml:2:19: queues.a.max.gpus: -3 is negative; give 0 or more",
             "bad.yaml:2:24: queues.a: there is no key 'wieght'; did you mean 'weight'?",
             "bad.yaml:3:23: scheduling.reclaim: 'yes' is neither true nor false; write true"]
    assert said.splitlines() == lines, said
    berth("apply", "-f", "bad.yaml", code=2, errors=3)
    berth("submit", "-f", "bad.yaml", code=2, errors=2)
    write("worse.yaml", "queue: aa\ngpus: 1\npriority: traning\ngpu_models: [H100-SMX5-80GB]\ncommand: x\n")
    told = json.loads(berth("check", "-o", "json", "good.yaml", "worse.yaml", code=2, env=nowhere))["items"]
    assert [file["kind"] for file in told] == ["config", "job"] and told[0]["mistakes"] == []
    assert [(one["line"], one["path"]) for one in told[1]["mistakes"]] == [(1, "queue"), (3, "priority"), (4, "gpu_models")]
    assert "did you mean 'H100-SXM5-80GB'?" in told[1]["mistakes"][2]["message"]
    berth("check", "worse.yaml", env=nowhere)  # without a configuration its names are not known
    berth("submit", "-f", "worse.yaml", code=2, errors=3)  # the server knows them, and tells all
    write("array.yaml", "queue: a\ngpus: 1\nkind: array\nworkdir: here\ncommand: x\n")
    said = berth("check", "good.yaml", "array.yaml", code=2, env=nowhere)  # what the server refuses whatever the cluster is
    assert said.splitlines()[1:] == ["array.yaml:4:10: workdir: must be an absolute path",
                                     "array.yaml:1:1: array.size must be between 1 and 1000000"], said
    berth("submit", "-f", "array.yaml", code=2, errors=2)
    write("mounting.yaml", "queue: a\ngpus: 1\ncommand: x\nmounts: ['d:/proc', 's:/a', 's:/a/b']\nmemory: 1GiB\nshm: 2GiB\n"
          "checkpoint: {volume: s, path: ../x}\n")
    told = json.loads(berth("check", "-o", "json", "mounting.yaml", code=2, env=nowhere))["items"][0]["mistakes"]
    assert [(one["line"], one["path"]) for one in told] == [(4, "mounts[0]"), (4, "mounts[2]"), (7, "checkpoint.path"), (6, "shm")], told
    # What the server fills in before it looks.
    write("filled.yaml", "queue: a\ntasks: 2\nmig_profile: 1g.10gb\ncpus: 0\nmemory: 0\n")
    assert berth("check", "filled.yaml", env=nowhere) == "filled.yaml: a job, no mistakes\n"
    write("torn.yaml", "queues:\n  a: {max: {gpus: 1}\n")
    assert "has no closing }" in berth("check", "torn.yaml", code=2, env=nowhere)
    write("prices.yaml", "currency: EUR\nprices:\n  - valid_from: 2026-11-01\n    gpus: {H100-SXM5-80GB: {floor: 2.5, burst: 3}}\n")
    write("issuers.yaml", "issuers:\n  - {name: corp, url: https://login.example.com, audience: berth, page: {client_id: berth,\n"
          "     client_secret_file: /on/the/server}}\n")
    said = berth("check", "prices.yaml", "issuers.yaml", "good.yaml", env=nowhere)
    assert said == ("prices.yaml: a price book with 1 period, no mistakes\nissuers.yaml: 1 issuer, no mistakes\n"
                    "good.yaml: a configuration with 2 queues, no mistakes\n"), said
    write("prices.yaml", "currency: EUR\nprices: {currency: EUR}\n")
    write("issuers.yaml", "issuers:\n  - {name: corp, url: https://login.example.com, audiense: berth}\n")
    said = berth("check", "prices.yaml", "issuers.yaml", code=2, env=nowhere)
    assert "prices.yaml:2:9: prices: this is a map; give a list" in said, said
    assert "issuers.yaml:2:50: issuers[0]: there is no key 'audiense'; did you mean 'audience'?" in said, said
    told = json.loads(berth("check", "-o", "json", "prices.yaml", "issuers.yaml", code=2, env=nowhere))["items"]
    assert [file["kind"] for file in told] == ["prices", "issuers"], told
    assert "'currency'" in berth("check", "prices.yaml", "--kind", "config", code=2, env=nowhere)
    assert "a job, no mistakes" in berth("check", "-", "--kind", "job", text="command: x\n", env=nowhere)
    said = berth("check", "/nonexistent.yaml", "bad.yaml", code=3, env=nowhere)
    assert said.splitlines() == lines, said  # what can be read is checked all the same
    try:
        berth.server.ask("PUT", "/v1/config", {"queues": {"a": {"weight": -1, "max": {"gpus": "x"}}}})
        raise AssertionError("two mistakes were taken")
    except Problem as refused:
        assert refused.status == 400 and len(json.loads(refused.body)["mistakes"]) == 2, refused


@check
def events_are_listed_and_followed(berth):
    events = [json.loads(line) for line in berth("events", "-o", "json").splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    some = [json.loads(line) for line in berth("events", "--kind", "job-submitted", "--limit", "2", "-o", "json").splitlines()]
    assert [event["kind"] for event in some] == ["job-submitted"] * 2
    listed = berth("events", "--from", "2", "--limit", "3").splitlines()
    assert [line.split()[0] for line in listed] == ["2", "3", "4"], listed
    following = berth.start("events", "-f", "--from", "1", "--limit", str(len(events)), "-o", "json")
    out, _ = following.communicate(timeout=stretched(60))
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [event["seq"] for event in events]
    following, jobs = berth.start("events", "-f", "--kind", "job-finished", "--limit", "1"), []

    def another():  # it begins with what comes next, whenever that is for it
        jobs.append(berth.submit("--queue", "a", "--", "true"))
        berth.wait(jobs[-1], "finished")
        return following.poll() is not None
    eventually("it has seen one", another)
    out, _ = following.communicate()
    assert any(f"job {job} succeeded" in out for job in jobs) and out.count("\n") == 1, (out, jobs)


@check
def usage_adds_up_in_every_format(berth):
    report = berth.json("usage")
    used = sum(row["gpu_milli_ms"] for row in report["items"])
    assert used > 0
    assert used + report["idle_gpu_milli_ms"] + report["down_gpu_milli_ms"] == report["capacity_gpu_milli_ms"]
    table = berth("usage", "--from", "-24h", "--to", "now")
    assert "used in all" in table and "capacity" in table and "(simulated GPUs)" in table.splitlines()[0], table
    rows = list(csv.DictReader(io.StringIO(berth("usage", "-o", "csv"))))
    assert {"within", "idle", "down", "capacity"} <= {row["kind"] for row in rows}, rows
    assert all(row["simulated"] == "true" for row in rows) and all(row["simulated"] for row in report["items"]), rows
    assert "simulated H100" in table, table
    assert berth("usage", "--by", "user", "--from", "yesterday").splitlines()[2].startswith("USER  "), table
    berth("usage", "--from", "yestreday", code=2)


@check
def lists_are_shown_in_columns_of_choice(berth):
    job = berth.submit("--queue", "a", "--name", "=1+1", "--gpus", "1", "--label", "run=7", "--", "sleep", "600")
    berth.wait(job, "running")
    table = berth("jobs", "-o", "custom=ID:id,GPUS:gpus,RUN:labels.run,ON:nodes,MORE:nope")
    assert table.splitlines()[0].split() == ["ID", "GPUS", "RUN", "ON", "MORE"], table
    assert [job, "1", "7", "n1", "-"] in [line.split() for line in table.splitlines()], table
    rows = list(csv.DictReader(io.StringIO(berth("jobs", "-o", "csv=id,name,waiting_since"))))
    mine = next(row for row in rows if row["ID"] == job)
    assert mine["NAME"] == "'=1+1" and mine["WAITING_SINCE"].endswith("Z"), mine
    rows = list(csv.DictReader(io.StringIO(berth("jobs", "-o", "csv"))))
    assert next(row for row in rows if row["ID"] == job)["LABELS"] == "run=7", rows
    assert {row["QUEUE"] for row in csv.DictReader(io.StringIO(berth("queues", "-o", "csv")))} >= {"a", "b"}
    assert berth("nodes", "-o", "csv").startswith("NODE,STATE,")
    assert berth("nodes", "n1", "-o", "custom=name,pool") == "NAME  POOL\nn1    default\n"
    assert berth("usage", "-o", "custom=user,gpu_seconds").startswith("USER ")
    for wrong in ("custom", "custom=", "custom=ID:id,user", "custom=id,,user", "csv=", "json=id"):
        berth("jobs", "-o", wrong, code=2)
    berth("queues", "a", "--explain", "-o", "csv", code=2)
    berth("cancel", job)
    berth.wait(job, "finished")


@check
def the_top_users_and_queues_are_told(berth):
    running = berth.submit("--queue", "a", "--user", "ann", "--gpus", "8", "--", "sleep", "600")
    berth.wait(running, "running")
    waiting = berth.submit("--queue", "b", "--user", "ben", "--gpus", "16", "--hold", "--", "true")
    top = berth.json("top")
    assert [row["user"] for row in top["users"]][:1] == ["ann"] and top["users"][0]["gpus"] == 8, top
    ben = next(row for row in top["users"] if row["user"] == "ben")
    assert (ben["gpus"], ben["pending"], ben["gpus_pending"]) == (0, 1, 16), top
    assert [row["queue"] for row in top["queues"]] == ["a", "b"], top
    shown = berth("top", "--by", "queue")
    assert shown.startswith("QUEUE ") and "USER" not in shown, shown
    assert "ann" not in berth("top", "--queue", "b")
    berth("top", "--queue", "nope", code=3)
    for job in (running, waiting):
        berth("cancel", job)
        berth.wait(job, "finished")


@check
def advice_is_told_of_what_is_there(berth):
    def codes():
        return [item["code"] for item in berth.json("advise")["items"]]
    assert "gang-by-hand" not in codes(), codes()
    parts = [berth.submit("--queue", "a", "--gpus", "8", "--env", "WORLD_SIZE=2", "--env", f"RANK={rank}", "--", "sleep", "600")
             for rank in range(2)]
    berth.wait(parts[0], "running")
    assert "gang-by-hand" in codes(), codes()
    told = berth("advise", "-o", "wide")
    assert "warning  gang-by-hand  queue a\n" in told, told
    assert f"has submitted jobs {parts[0]} and {parts[1]} of one task each" in told, told
    for part in parts:
        berth("cancel", part)
        berth.wait(part, "finished")
    assert "gang-by-hand" not in codes(), codes()
    berth("advise", "--severity", "note", code=2)


@check
def the_checklist_is_tried_on_what_is_there(berth):
    found = berth.json("doctor")
    results = {item["check"]: item["result"] for item in found["items"]}
    assert results["nodes"] == results["tls"] == "ok" and results["backups"] == results["prices"] == "missing", results
    assert found["broken"] == 0 and found["ok"] == list(results.values()).count("ok"), found
    told = berth("doctor")
    assert "missing        backups: The server makes no backups.\n" in told and "nodes:" not in told, told
    assert "-> berth serve --backup-to DIR" in told and told.endswith("of what can be judged is ok\n"), told
    assert "  ok             nodes: berth is in contact with 1 node.\n" in berth("doctor", "--all")
    job = berth.submit("--queue", "a", "--hold", "--env", "HF_TOKEN=hf_abc", "--", "true")
    told = berth("doctor", code=1)
    assert f"broken         secrets-by-reference: 1 live job has a variable" in told and f": {job}." in told, told
    assert "hf_abc" not in told and "hf_abc" not in berth("doctor", "-o", "json", code=1)
    document = berth("doctor", "-o", "html", code=1)
    assert '<td class="broken">broken</td><td>1 live job has a variable' in document and '<td class="ok">ok</td>' in document
    assert document.startswith("<!doctype html>") and document.endswith("</html>\n") and "hf_abc" not in document
    berth("cancel", job)
    berth.wait(job, "finished")
    berth("doctor")
    berth("doctor", "everything", code=2)


@check
def a_checkpoint_is_acknowledged_from_inside(berth):
    program = berth_binary()
    job = berth.submit("--queue", "a", "--checkpoint-signal", "USR1", "--grace", "30s", "--", "sh", "-c",
                       f"{program} checkpoint-done --step 42 && exec sleep 600")
    eventually("step 42 is told", lambda: berth.json("job", job).get("checkpoint", {}).get("step") == 42)
    assert "step 42" in berth("job", job)
    berth("checkpoint-done", "--job", job, "--attempt", "1", "--step", "43")
    assert berth.json("job", job)["checkpoint"]["step"] == 43
    berth("checkpoint-done", "--job", job, "--attempt", "9", "--step", "44", code=4)
    berth("checkpoint-done", "--job", "99999", "--attempt", "1", "--step", "44", code=3)
    berth("cancel", job)
    berth("checkpoint-done", "--step", "1", code=2)


@check
def a_watch_goes_on(berth):
    watching = berth.start("jobs", "--watch", "--every", "1", "-o", "json")
    for _ in range(2):  # each look at the jobs ends so
        assert not read_until(watching.stdout, b"]\n")[1], watching.stderr.read()
    watching.terminate()
    watching.communicate()


@check
def the_rest_answers(berth):
    snapshot = json.loads(berth("snapshot"))
    assert {"seq", "config", "queues", "nodes", "jobs"} <= set(snapshot)
    version = berth("version")
    assert berth("--version") == version == berth("version", "-o", "wide")
    assert berth("usage", "-o", "wide").splitlines()[0].endswith("(simulated GPUs)")
    assert version.startswith("berth ") and "server " in version and "none" not in version, version
    for shell in ("bash", "zsh", "fish"):
        assert "submit" in berth("completion", shell)
    script = berth("completion", "bash") + "\nCOMP_WORDS=(berth sub); COMP_CWORD=1; _berth; echo \"${COMPREPLY[@]}\"\n" \
        "COMP_WORDS=(berth submit --launch per-); COMP_CWORD=3; _berth; echo \"${COMPREPLY[@]}\"\n"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert completed.stdout == "submit\nper-task per-gpu\n", completed
    help_text = berth("--help")
    for command in ("submit", "serve", "dev", "verify", "supervise"):
        assert f"\n  {command} " in help_text
    for command in re.findall(r"^  ([a-z][a-z-]+)  ", help_text, re.M):
        shown = berth(command, "--help")
        assert "Example" in shown and len(shown.splitlines()) > 3, (command, shown)
    bash = berth("completion", "bash")
    for command in ("serve", "dev"):
        offered = set(re.search(rf"^ *{command}\) flags=\"([^\"]*)\"", bash, re.M).group(1).split())
        taken = set(re.findall(r"(?:^|[ ,])(-h|--[a-z-]+)", re.sub(r"(?m)^( {0,6}\S+).*|^ .*", r"\1", berth(command, "--help"))))
        assert offered == taken, (command, offered ^ taken)


@check
def a_narrow_terminal_cuts_no_number_and_no_mark(berth):
    long = "a-name-that-somebody-thought-up-late-in-the-night-and-nobody-will-type-again"
    job = berth.submit("--queue", "a", "--name", long, "--gpus", "1", "--user", "ana.maria.de.la.vega@research.example", "--", "sleep", "600")
    berth.wait(job, "running")
    for words in (["jobs"], ["jobs", "--all"], ["nodes"], ["nodes", "n1"], ["queues"], ["usage"]):
        shown = subprocess.run(["script", "-qec", f"stty cols 80; {berth_binary()} " + " ".join(words), "/dev/null"],
                               capture_output=True, text=True, env=berth.environment, stdin=subprocess.DEVNULL).stdout
        lines = shown.replace("\r", "").splitlines()
        assert lines and max(map(len, lines)) <= 80, (words, shown)
        if words == ["jobs"]:
            assert any(line.split()[0] == job and line.split()[-2:] == ["1", "n1"] for line in lines), shown
        if words == ["nodes"]:
            assert "simulated" in shown, shown
    berth("cancel", job)
    berth.wait(job, "finished")


@check
def what_is_wrong_has_its_exit_code(berth):
    berth("sumbit", code=2)
    berth("submit", "--queue", "nowhere", "--", "true", code=(2, 3))
    berth("jobs", code=6, env={"BERTH_TOKEN_FILE": "", "BERTH_TOKEN": "wrong"})
    berth("jobs", code=6, env={"BERTH_TOKEN_FILE": "", "HOME": "/nonexistent", "XDG_STATE_HOME": ""})
    berth("jobs", code=5, env={"BERTH_SERVER": "http://127.0.0.1:1"})
    berth("jobs", "--token-file", "/nonexistent", code=3)


def main():
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config)
    assert server.start(), server.tail()
    berth = Cli(server, directory)
    only = sys.argv[1:]
    failed = 0
    ran = [rule for rule in checks if not only or rule.__name__ in only]
    for rule in ran:
        try:
            rule(berth)
        except (AssertionError, KeyError, IndexError, ValueError, subprocess.TimeoutExpired) as problem:
            failed += 1
            line = traceback.extract_tb(problem.__traceback__)[1]
            print(f"FAILED: {rule.__name__.replace('_', ' ')}: line {line.lineno}, {line.line}: {type(problem).__name__} {problem}")
    for job in berth.json("jobs"):
        berth("cancel", str(job["id"]), code=(0, 4))  # 4: it has ended meanwhile
        berth.wait(str(job["id"]), "finished")
    server.stop()
    if failed == 0:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        print("evidence is in", directory)
    print(f"{len(ran) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

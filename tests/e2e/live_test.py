#!/usr/bin/env python3
"""The real daemon with real processes, killed again and again: at random moments, and at writes and syncs of its log; and
supervisors of its tasks, too.

Afterwards everything is reconciled: every acknowledged job is there, once, and has ended well, no task ran twice, no two
tasks held one GPU, no process is left, every GPU-second is in one account, and the log verifies.

    live_test.py [--seed N] [--kills N] [--points N] [--supervisors N]      BERTH_LONG=1 multiplies all by ten
"""
import argparse
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from patience import eventually, stretched
from server import Problem, Server, berth_binary, for_jobs, fresh_directory, processes_of, python_of_jobs

CONFIG = """
cluster: live
queues:
  a: {guaranteed: {gpus: 4}}
  b: {guaranteed: {gpus: 4}}
scheduling: {grace: 5s}
"""
WITNESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "witness.py")


class Submitter(threading.Thread):
    """Submits jobs with keys until told to stop; keeps its own journal of what was acknowledged. Keys that were acknowledged
    are sent again now and then: that must be the same job, whatever happened to the server in between."""

    def __init__(self, server, evidence, seed):
        super().__init__(daemon=True)
        self.server, self.evidence = server, evidence
        self.witness = for_jobs(server.directory, WITNESS)
        self.random = random.Random(seed)
        self.acknowledged = {}
        self.sent = {}
        self.sent_again = 0
        self.broken = None  # what the server must never answer
        self.stopped = threading.Event()

    def body(self):
        tasks = self.random.choice([1, 1, 2])
        return {"name": "witness", "queue": self.random.choice("ab"), "tasks": tasks,
                "gpus": self.random.choice([1, 2, 4]), "cpus": 0.1, "memory": "64MiB", "retries": 0,
                "checkpoint": {"on_signal": True, "signal": "SIGUSR1", "grace": "5s"},
                "command": [python_of_jobs(), self.witness, self.evidence, str(self.random.choice([0.05, 0.2, 0.6]))]}

    def run(self):
        number = 0
        while not self.stopped.is_set() and not self.broken:
            if self.acknowledged and self.random.random() < 0.2:
                if self.send(self.random.choice(sorted(self.acknowledged))):
                    self.sent_again += 1
            elif self.send(f"key-{number}"):
                number += 1
                time.sleep(self.random.choice([0.02, 0.1]))  # allowed: paces a load

    def send(self, key):
        """Whether the server answered at all: it may be dead, and then the same key goes again."""
        body = self.sent.setdefault(key, self.body())
        try:
            answer = self.server.ask("POST", "/v1/jobs", body, {"Idempotency-Key": key}, timeout=5)
        except Problem as problem:
            if problem.status < 500:
                self.broken = f"{key} was refused: {problem}"
            time.sleep(0.05)  # allowed: paces a load
            return False
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.05)  # allowed: paces a load
            return False
        earlier = self.acknowledged.setdefault(key, answer["id"])
        if earlier != answer["id"]:
            self.broken = f"{key} was job {earlier} and is now job {answer['id']}"
        return True


def kill_at_random(server, submitter, chance, kills):
    """Each life of the server lasts until it has taken a job, and some time on top."""
    for _ in range(kills):
        before = len(submitter.acknowledged)
        eventually("another job is taken", lambda: len(submitter.acknowledged) > before or submitter.broken)
        time.sleep(chance.uniform(0.05, 0.8))  # allowed: a kill comes at any time
        server.kill()
        if not server.start():
            raise SystemExit("the server did not come back:\n" + server.tail())


def kill_at_points(server, kind, points):
    """Each start dies at its n-th write or sync; the next one must take over from wherever that was."""
    died = 0
    for point in points:
        server.kill()
        if server.start({"BERTH_STORE_FAULT": f"{kind}:{point}:kill"}):
            try:
                server.process.wait(stretched(15))
            except subprocess.TimeoutExpired:
                server.kill()
                server.start()
                continue
        died += 1
        if not server.start():
            raise SystemExit(f"the server did not come back from {kind} {point}:\n" + server.tail())
    return died


def supervisors_of(server):
    """The supervisors of this server's tasks, by their command lines; not their children, which look the same until they
    have become the task."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if any(word.endswith(b"supervise") for word in words) and any(word.startswith(server.data.encode()) for word in words):
            parents[int(pid)] = parent
    return [pid for pid, parent in parents.items() if parent not in parents]


def kill_supervisors(server, chance, count):
    """What they looked after must end with them, and its job must start anew."""
    def one_more():
        for victim in chance.sample(found := sorted(supervisors_of(server)), len(found)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                return True
        return False
    for _ in range(count):
        time.sleep(chance.uniform(0.05, 0.4))  # allowed: a kill comes at any time
        eventually("a supervisor is met", one_more)
    return count


def attempts_of(events):
    """(job, attempt) -> number of tasks bound, and how each job ended, as the event log says."""
    bound, ended = {}, {}
    for event in events:
        if event["kind"] == "attempt-started":
            bound[event["job"], event["attempt"]] = len(event["placements"])
        if event["kind"] == "job-finished":
            ended[event["job"]] = event["outcome"]
    return bound, ended


def all_events(server):
    events, begin = [], 1
    while True:
        page = server.ask("GET", f"/v1/events?from={begin}&limit=1000")
        if not page["items"]:
            return events
        events += page["items"]
        begin = page["next_from"]


def integrate(events):
    """GPU-milliseconds of every attempt, from the events alone."""
    begun, total = {}, 0
    for event in events:
        when = event["time_ms"] if "time_ms" in event else parse_ms(event["time"])
        if event["kind"] == "attempt-started":
            begun[event["job"]] = (when, sum(len(p["gpus"]) * p["gpu_milli"] for p in event["placements"]))
        if event["kind"] == "attempt-ended":
            start, milli = begun.pop(event["job"])
            total += (when - start) * milli
    assert not begun, f"attempts that never ended: {begun}"
    return total


def parse_ms(text):
    import calendar
    whole, fraction = text.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 1000 + int(fraction)


def reconcile(server, submitter, evidence):
    problems = []
    violations = os.path.join(evidence, "violations")
    if os.path.exists(violations):
        with open(violations) as file:
            problems += file.read().splitlines()
    events = all_events(server)
    seqs = [event["seq"] for event in events]
    if seqs != list(range(1, len(seqs) + 1)):
        problems.append("the event stream has a gap or a repeat")
    bound, ended = attempts_of(events)
    submitted = {event["job"] for event in events if event["kind"] == "job-submitted"}
    if len(submitted) > len(submitter.sent):
        problems.append(f"{len(submitter.sent)} keys became {len(submitted)} jobs")
    for key, job in submitter.acknowledged.items():
        if ended.get(job) != "succeeded":
            problems.append(f"{key} was acknowledged as job {job}, which ended as {ended.get(job)}")
    if len(set(submitter.acknowledged.values())) != len(submitter.acknowledged):
        problems.append("two keys are one job")
    for run in os.listdir(evidence):
        if run.startswith("run-"):
            _, job, attempt, task = run.split("-")
            if int(task) >= bound.get((int(job), int(attempt)), 0):
                problems.append(f"{run}: a process of an attempt that was never bound")
    usage = server.ask("GET", "/v1/usage")
    used = sum(row["gpu_milli_ms"] for row in usage["items"])
    if used != integrate(events):
        problems.append(f"usage says {used} thousandths of GPU-milliseconds, the events say {integrate(events)}")
    if used + usage["idle_gpu_milli_ms"] + usage["down_gpu_milli_ms"] != usage["capacity_gpu_milli_ms"]:
        problems.append("used, idle and down do not add up to the capacity")
    left = processes_of(server.directory)
    if left:
        problems.append(f"processes are left: {left}")
    return problems, len(events), len(bound)


def too_little(options, times, submitter, writes, syncs, supervisors):
    """What did not happen often enough for the test to mean anything."""
    problems = [submitter.broken] if submitter.broken else []
    deaths = (options.kills + 2 * options.points) * times
    if len(submitter.acknowledged) < deaths / 2:
        problems.append(f"only {len(submitter.acknowledged)} jobs were acknowledged between {deaths} deaths")
    if options.points * times >= 5 and not submitter.sent_again:
        problems.append("no key was sent again")
    for what, died in (("writes", writes), ("syncs", syncs)):
        if died < options.points * times / 3:
            problems.append(f"the server died at only {died} of {options.points * times} {what}")
    if supervisors < options.supervisors * times:
        problems.append(f"only {supervisors} supervisors were met to be killed")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--supervisors", type=int, default=4)
    options = parser.parse_args()
    times = 10 if os.environ.get("BERTH_LONG") else 1
    directory = fresh_directory()
    evidence = os.path.join(directory, "evidence")
    os.mkdir(evidence)
    os.chmod(evidence, 0o1777)
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config, flags=["--checkpoint-every", "40"])
    assert server.start(), server.tail()
    submitter = Submitter(server, evidence, options.seed)
    submitter.start()
    kill_at_random(server, submitter, random.Random(options.seed), options.kills * times)
    writes = kill_at_points(server, "write", range(1, 1 + 3 * options.points * times, 3))
    syncs = kill_at_points(server, "fsync", range(1, 1 + options.points * times))
    supervisors = kill_supervisors(server, random.Random(options.seed), options.supervisors * times)
    deaths = (options.kills + 2 * options.points) * times
    eventually("enough jobs are taken, and one again", lambda: submitter.broken or (
        len(submitter.acknowledged) >= deaths / 2 and (submitter.sent_again or options.points * times < 5)))
    submitter.stopped.set()
    submitter.join(stretched(30))
    eventually(lambda: "jobs are still not done: " + json.dumps(server.all("/v1/jobs"))[:3000], lambda: not server.all("/v1/jobs"), 240)
    problems, events, attempts = reconcile(server, submitter, evidence)
    problems += too_little(options, times, submitter, writes, syncs, supervisors)
    server.stop()
    verified = subprocess.run([berth_binary(), "verify", server.data], capture_output=True, text=True)
    if verified.returncode != 0:
        problems.append("berth verify: " + verified.stderr.strip())
    for problem in problems:
        print("FAILED:", problem)
    print(f"{options.kills * times} kills at random, {writes} at writes, {syncs} at syncs, {supervisors} of supervisors; "
          f"{len(submitter.acknowledged)} jobs acknowledged, {submitter.sent_again} of them asked for again, {attempts} attempts, {events} events")
    print(verified.stdout.strip())
    if not problems:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        print("evidence is in", directory)
    print(f"{0 if problems else 1} passed, {1 if problems else 0} failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

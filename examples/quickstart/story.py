#!/usr/bin/env python3
"""The quickstart's story: two teams share eight GPUs on this machine, with real processes.

Team B borrows what team A leaves idle. When A's gang arrives, B checkpoints and leaves, A runs, and B goes on from the
step it had reached. Ends with 0 only if no training step was done twice and the usage of both adds up.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BERTH = os.environ.get("BERTH") or os.path.join(ROOT, "build", "release", "berth")
GPUS = "8xH100-SXM5-80GB"
PATIENCE_S = 300
PREFIX = "berth-quickstart-"


def fail(message):
    raise SystemExit(f"quickstart: {message}")


def access(data, url):
    """How the server is reached: by its Unix socket, where one's login name says who one is; else with its token."""
    socket = os.path.join(data, "berth.sock")
    if os.path.exists(socket):
        return {"BERTH_SERVER": "unix:" + socket}
    return {"BERTH_SERVER": url, "BERTH_TOKEN_FILE": os.path.join(data, "token")}


def environment_with(chosen):
    return {**{name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}, **chosen}


class Cluster:
    """A server of its own in a fresh directory, and the berth command to talk to it."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix=PREFIX)
        # A server that is root runs the jobs as other users. They pass through here, and read the program from here: this
        # repository may lie in a home that is closed to them.
        os.chmod(self.directory, 0o711)
        self.program = shutil.copy(os.path.join(ROOT, "examples", "training", "train.py"), self.directory)
        os.chmod(self.program, 0o644)
        self.data = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "server.log")
        ready = os.path.join(self.directory, "ready")
        command = [BERTH, "serve", "--config", os.path.join(HERE, "cluster.yaml"), "--data", self.data, "--simulate-gpus", GPUS,
                   "--node-name", "this-machine", "--ready-file", ready]
        with open(self.log, "w") as log:
            self.server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        with open(os.path.join(self.directory, "pid"), "w") as file:
            file.write(str(self.server.pid))
        self.environment = environment_with({})
        try:
            self.wait_until_ready(ready)
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self, ready):
        for _ in range(600):
            if os.path.exists(ready) or self.server.poll() is not None:
                break
            time.sleep(0.1)
        if not os.path.exists(ready):
            fail("the server did not start:\n" + self.server_log())
        with open(ready) as file:
            self.access = access(self.data, file.read().strip())
        self.environment = environment_with(self.access)

    def server_log(self):
        with open(self.log) as file:
            return file.read()[-4000:]

    def berth(self, *words):
        done = subprocess.run([BERTH, *words], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"'berth {' '.join(words)}' failed: {done.stderr.strip()}\n{self.server_log()}")
        return done.stdout

    def json(self, *words):
        return json.loads(self.berth(*words, "-o", "json"))

    def submit(self, file):
        with open(os.path.join(HERE, file)) as source:
            text = source.read().replace("@TRAIN@", self.program)
        path = os.path.join(self.directory, file)
        with open(path, "w") as target:
            target.write(text)
        return self.json("submit", "-f", path)["id"]

    def steps(self, job):
        path = os.path.join(self.data, "jobs", str(job), "checkpoint", "steps.jsonl")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def events(self):
        return [json.loads(line) for line in self.berth("events", "-o", "json").splitlines() if line]

    def stop(self):
        stop(self.directory, self.environment)


def run_quietly(environment, *words):
    return subprocess.run([BERTH, *words], env=environment, capture_output=True, text=True)


def stop(directory, environment):
    """Cancels what still runs (jobs outlive the server), waits until it has left, ends the server, removes its directory."""
    end = time.monotonic() + 40
    cancelled = set()
    while time.monotonic() < end:
        listed = run_quietly(environment, "jobs", "-o", "json")
        ids = {str(job["id"]) for job in json.loads(listed.stdout)} if listed.returncode == 0 else set()
        if not ids:
            break
        if ids - cancelled:
            run_quietly(environment, "cancel", *sorted(ids - cancelled))
            cancelled |= ids
        time.sleep(0.2)
    with open(os.path.join(directory, "pid")) as file:
        server = int(file.read())
    try:
        os.kill(server, signal.SIGTERM)
        while time.monotonic() < end + 30 and is_alive(server):
            time.sleep(0.05)
        if is_alive(server):
            os.kill(server, signal.SIGKILL)
    except ProcessLookupError:
        pass
    shutil.rmtree(directory, ignore_errors=True)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def stop_earlier(directory):
    """What --stop does: as stop(), for the server that an earlier --stay left up."""
    directory = os.path.abspath(directory)
    ready = os.path.join(directory, "ready")
    if not os.path.basename(directory).startswith(PREFIX) or not os.path.exists(ready):
        fail(f"{directory} is not the directory of a server that --stay left up")
    with open(ready) as file:
        url = file.read().strip()
    stop(directory, environment_with(access(os.path.join(directory, "data"), url)))
    print(f"The server is stopped, and {directory} is removed.")


def end_by_signal(number, _):
    raise SystemExit(128 + number)


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            fail(f"waited {PATIENCE_S} s in vain until {what}")
        time.sleep(0.2)


def milliseconds(text):
    whole, fraction = text.rstrip("Z").split(".")
    return int(time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))) * 1000 + int(fraction)


def timeline(events, names):
    """The story as berth's own events tell it."""
    lines = []
    begin = None
    for event in events:
        job = names.get(event.get("job"))
        kind = event["kind"]
        if job is None:
            continue
        begin = begin if begin is not None else milliseconds(event["time"])
        text = None
        if kind == "job-submitted":
            gpus = sum(group["count"] * group["request"]["gpus"] for group in event["spec"]["groups"])
            text = f"asks for a gang of {gpus} GPUs"
        elif kind == "attempt-started":
            gpus = sum(len(placement["gpus"]) for placement in event["placements"])
            how = "within its guarantee" if event["guaranteed"] else "beyond its guarantee: it borrows"
            text = f"attempt {event['attempt']} starts on {gpus} GPUs, {how}"
        elif kind == "nominated":
            owners = " and ".join(names.get(victim, "?") for victim in event["victims"])
            text = f"is owed GPUs that {owners} has borrowed, and is promised them"
        elif kind == "stop-began":
            text = "is asked to give its GPUs back: checkpoint and leave"
        elif kind == "checkpoint-reported":
            text = f"has saved step {event['step']}"
        elif kind == "attempt-ended":
            text = f"attempt {event['attempt']} ends: {event['outcome']}"
        elif kind == "job-requeued":
            text = "waits again, at its old age"
        elif kind == "job-finished":
            text = f"is done: {event['outcome']}"
        if text:
            lines.append(f"  {(milliseconds(event['time']) - begin) / 1000:6.1f} s  {job:<20} {text}")
    return lines


def check_steps(cluster, name, job, wanted):
    steps = [entry["step"] for entry in cluster.steps(job)]
    if steps != list(range(1, wanted + 1)):
        doubled = sorted({step for step in steps if steps.count(step) > 1})
        fail(f"{name} did {len(steps)} steps instead of {wanted}; twice: {doubled or 'none'}")
    losses = [entry["loss"] for entry in cluster.steps(job)]
    if not losses[-1] < losses[0] / 2:
        fail(f"{name}: the loss did not fall ({losses[0]} to {losses[-1]})")
    return losses


def check_usage(usage):
    parts = sum(row["gpu_milli_ms"] for row in usage["items"]) + usage["idle_gpu_milli_ms"] + usage["down_gpu_milli_ms"]
    if parts != usage["capacity_gpu_milli_ms"]:
        fail(f"the usage does not add up: {parts} of {usage['capacity_gpu_milli_ms']} thousandths of GPU-milliseconds")


def play(cluster):
    print(f"berth serves on {cluster.access['BERTH_SERVER']}; this machine has 8 simulated GPUs, 4 guaranteed to each of two teams.\n", flush=True)
    team_b = cluster.submit("team-b.yaml")
    wait_until("team B has done 20 steps", lambda: len(cluster.steps(team_b)) >= 20)
    print(f"Team B trains on all 8 GPUs (job {team_b}, step {len(cluster.steps(team_b))}). Now team A comes.", flush=True)
    team_a = cluster.submit("team-a.yaml")
    print("\n$ berth why", team_a)
    print(cluster.berth("why", str(team_a)), flush=True)
    wait_until("team A is done", lambda: cluster.json("job", str(team_a))["phase"] == "finished")
    print(f"Team A is done. Team B has {len(cluster.steps(team_b))} steps and goes on.", flush=True)
    wait_until("team B is done", lambda: cluster.json("job", str(team_b))["phase"] == "finished")
    names = {team_b: f"B large-model ({team_b})", team_a: f"A fine-tune ({team_a})"}
    print("\nWhat happened:\n" + "\n".join(timeline(cluster.events(), names)))
    losses_b = check_steps(cluster, "team B", team_b, 150)
    losses_a = check_steps(cluster, "team A", team_a, 60)
    attempts = len({entry["attempt"] for entry in cluster.steps(team_b)})
    if attempts < 2:
        fail("team B was never asked to give back what it had borrowed")
    print(f"\nTeam B: 150 steps in {attempts} attempts, none twice, loss {losses_b[0]:.3f} to {losses_b[-1]:.3f}.")
    print(f"Team A:  60 steps in 1 attempt, none twice, loss {losses_a[0]:.3f} to {losses_a[-1]:.3f}.")
    usage = cluster.json("usage")
    check_usage(usage)
    print("\n$ berth usage")
    print(cluster.berth("usage"))
    print("Every millisecond of every GPU is in one account, and they add up.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stay", action="store_true", help="leave the server up afterwards")
    parser.add_argument("--stop", metavar="DIR", help="stop the server that --stay left up in DIR")
    options = parser.parse_args()
    if options.stop:
        stop_earlier(options.stop)
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    cluster = Cluster()
    try:
        play(cluster)
    except BaseException:
        cluster.stop()
        raise
    if not options.stay:
        cluster.stop()
        return
    print(f"""
The server stays up. To use it:
  export {" ".join(f"{name}={value}" for name, value in cluster.access.items())}
  {BERTH} queues
  {BERTH} submit --queue team-a --gpus 2 -- sleep 60
To stop its jobs and it, and to remove its data:
  ./quickstart --stop {cluster.directory}""")


if __name__ == "__main__":
    main()

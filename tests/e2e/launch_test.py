#!/usr/bin/env python3
"""Real launchers under a real server with simulated GPUs: PyTorch's ranks by `per-task`, `per-gpu` and `torchrun` and below
Open MPI's mpirun, and a launcher that puts its workers into sessions of their own. Each job is reclaimed, saves, and goes on
from there. An elastic gang is shrunk and grown again: twice, and ten times with BERTH_LONG=1.

PyTorch and mpirun are Debian's, installed or from the cache (debian.py). What cannot be had is skipped, and said.

    launch_test.py [--python PROGRAM]     another Python with a PyTorch; its torchrun is `PROGRAM -m torch.distributed.run`
"""
import argparse
import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

import debian
from patience import eventually
from server import ROOT, Server, for_jobs, fresh_directory, processes_of, python_of_jobs

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = """
cluster: launchers
queues:
  fixed: {guaranteed: {gpus: 8}, max: {gpus: 8}, queues: {owner: {guaranteed: {gpus: 8}}, rest: {}}}
  elastic: {guaranteed: {gpus: 8}, max: {gpus: 8}, queues: {owner: {guaranteed: {gpus: 8}}, rest: {}}}
scheduling: {grace: 60s, resize_interval: 1s}
"""
PATIENCE_S = 240  # PyTorch alone takes long to begin
CYCLES = 10 if os.environ.get("BERTH_LONG") else 2
REFORM = "last_call_timeout=3"  # how long an elastic agent waits for more tasks than the least; 30 s by itself


class Skipped(Exception):
    """The rule cannot be tried here; the message says why."""


def write_script(path, text):
    with open(path, "w") as file:
        file.write("#!/bin/bash\n" + text)
    os.chmod(path, 0o755)


def take_a_network_alone():
    """Jobs listen on the ports that berth gives to gangs, and other servers of this machine count from the same one. As root, a
    network namespace keeps them apart; otherwise they may collide."""
    CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP_RUNNING = 0x40000000, 0x8914, 0x41
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        print("the network is shared with other servers of this machine:", os.strerror(ctypes.get_errno()))
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))


class Torch:
    """The Python that has PyTorch, with the environment that it needs, and a torchrun that is run by it: the script that
    Debian's 1.13 brings fails on Python 3.11."""

    def __init__(self, python, directory):
        self.python, self.environment, self.missing = python or "/usr/bin/python3", {}, None
        try:
            home = "/" if python else debian.fetched(["python3-torch"])
            if home != "/":
                self.environment = {"PYTHONPATH": os.path.join(home, "usr/lib/python3/dist-packages"), "LD_LIBRARY_PATH": debian.library_path(home)}
            answer = subprocess.run([self.python, "-c", "import torch; print(torch.__version__, end='')"], capture_output=True, text=True,
                                    env={**os.environ, **self.environment})
            # The packages are here, so this is no skip: it would hide that no launcher is tested any more.
            assert answer.returncode == 0, f"{self.python} cannot import torch, with {self.environment}: {answer.stderr.strip()}"
            self.version = answer.stdout
        except debian.NotToBeHad as problem:
            self.missing = str(problem)
        self.training = for_jobs(directory, os.path.join(HERE, "ddp_train.py"))
        self.bin = os.path.join(directory, "bin")
        os.mkdir(self.bin)
        write_script(os.path.join(self.bin, "torchrun"), f'words=("${{@/is_host=true/is_host=true,{REFORM}}}")\n'
                     f'exec {self.python} -m torch.distributed.run --redirects 1 --tee 1 "${{words[@]/is_host=false/is_host=false,{REFORM}}}"\n')

    def job(self, **keys):
        if self.missing:
            raise Skipped(f"no PyTorch: {self.missing}")
        env = {"PATH": self.bin + ":" + os.environ["PATH"], "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **self.environment}
        return {"env": env, "command": [self.python, self.training], **keys}


class Mpirun:
    """Open MPI's launcher."""

    def __init__(self):
        self.home, self.missing = None, None
        try:
            self.home = debian.fetched(["openmpi-bin"])
        except debian.NotToBeHad as problem:
            self.missing = str(problem)

    def job(self, torch):
        """One task that starts two ranks itself."""
        if self.missing:
            raise Skipped(f"no mpirun: {self.missing}")
        job = torch.job(name="mpirun", launch="per-task", gpus=2)
        if self.home != "/":
            libraries = os.path.join(self.home, "usr/lib", os.uname().machine + "-linux-gnu")
            old = job["env"].get("LD_LIBRARY_PATH")
            job["env"].update({"LD_LIBRARY_PATH": libraries + ":" + libraries + "/pmix2/lib" + (":" + old if old else ""),
                               "OPAL_PREFIX": os.path.join(self.home, "usr"), "OPAL_LIBDIR": libraries + "/openmpi/lib",
                               "OPAL_PKGLIBDIR": libraries + "/openmpi/lib/openmpi3", "OPAL_DATADIR": os.path.join(self.home, "usr/share"),
                               "PMIX_MCA_mca_base_component_path": libraries + "/pmix2/lib/pmix"})
        mpirun = os.path.join(self.home, "usr/bin/mpirun.openmpi")
        job["command"] = [mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "2", *job["command"]]
        return job


def in_sessions(directory):
    """Workers in sessions of their own; the program needs no PyTorch."""
    folder = os.path.join(directory, "stand-in")
    os.mkdir(folder)
    launcher = for_jobs(directory, os.path.join(HERE, "session_launcher.py"))
    training = for_jobs(directory, os.path.join(ROOT, "examples/training/train.py"))
    write_script(os.path.join(folder, "torchrun"), f'exec {python_of_jobs()} {launcher} "$@"\n')
    return {"name": "sessions", "launch": "torchrun", "tasks": 2, "gpus": 1, "env": {"PATH": folder + ":" + os.environ["PATH"]},
            "command": [python_of_jobs(), training, "--steps", "400", "--step-ms", "30"]}


class World:
    def __init__(self, python):
        self.directory = fresh_directory()
        config = os.path.join(self.directory, "cluster.yaml")
        with open(config, "w") as file:
            file.write(CONFIG)
        self.torch = Torch(python, self.directory)
        self.mpirun = Mpirun()
        take_a_network_alone()
        self.server = Server(self.directory, config, gpus="16xH100-SXM5-80GB")
        assert self.server.start(), self.server.tail()

    def submit(self, side, **keys):
        contract = {"on_signal": True, "signal": "SIGUSR1", "grace": "60s"}
        body = {"queue": side + "/rest", "cpus": 2, "memory": "3GiB", "retries": 0, "checkpoint": contract, **keys}
        return self.server.ask("POST", "/v1/jobs", body)["id"]

    def owner(self, side, gpus, seconds=1):
        """A job that takes back what others borrow on its side of the tree."""
        return self.server.ask("POST", "/v1/jobs", {"name": "owner", "queue": side + "/owner", "gpus": gpus, "cpus": 0.1, "memory": "64MiB",
                                                    "command": ["sleep", str(seconds)]})["id"]

    def steps(self, job):
        path = os.path.join(self.server.data, "jobs", str(job), "checkpoint", "steps.jsonl")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return [json.loads(line) for line in file]

    def job(self, number):
        return self.server.ask("GET", f"/v1/jobs/{number}")

    def is_done(self, number):
        return self.job(number)["phase"] == "finished"

    def story(self, number):
        """What there is to see of a job that did not do as it should."""
        lines = [json.dumps(event) for event in self.server.all_events() 
                 if event.get("job") == number and event["kind"] not in ("job-submitted", "checkpoint-reported")]
        for folder, _, files in os.walk(os.path.join(self.server.data, "jobs", str(number))):
            for name in files:
                if name.startswith(("stdout", "stderr")):
                    with open(os.path.join(folder, name), errors="replace") as file:
                        lines.append(f"--- {folder}/{name}\n" + file.read()[-3000:])
        return "\n".join(lines)


def jobs_are_reclaimed_and_go_on(world, report):
    """All launchers at once: each job saves when the owner comes, ends its first attempt, and goes on from what it saved."""
    torch = world.torch
    makers = {
        "per-task": lambda: torch.job(name="per-task", launch="per-task", tasks=2, gpus=1),
        "per-gpu": lambda: torch.job(name="per-gpu", launch="per-gpu", tasks=1, gpus=2),
        "torchrun": lambda: torch.job(name="torchrun", launch="torchrun", tasks=2, gpus=1),
        "mpirun": lambda: world.mpirun.job(torch),
        "sessions": lambda: in_sessions(world.directory),
    }
    for names in (["per-task", "per-gpu", "torchrun"], ["mpirun"], ["sessions"]):
        wave = {}
        for name in names:
            try:
                wave[name] = world.submit("fixed", **makers[name]())
            except Skipped as why:
                report.skip(name, why)
        for name, job in wave.items():
            eventually(f"{name} takes ten steps", lambda: len(world.steps(job)) >= 10 or world.is_done(job), PATIENCE_S)
        owner = world.owner("fixed", 8) if wave else None
        for name, job in wave.items():
            report.check(name + " was reclaimed, saved, and went on", lambda: went_on(world, job, owner))


def went_on(world, number, owner):
    eventually(f"job {number} is done", lambda: world.is_done(number), PATIENCE_S)
    steps = [(line["attempt"], line["step"]) for line in world.steps(number)]
    job = world.job(number)
    assert job["outcome"] == "succeeded", f"{job['outcome']}\n{world.story(number)}"
    assert [step for _, step in steps] == list(range(1, len(steps) + 1)), f"steps are lost or done twice: {steps}\n{world.story(number)}"
    assert sorted({attempt for attempt, _ in steps}) == [1, 2], f"not two attempts: {steps}\n{world.story(number)}"
    worlds = {line.get("world", 2) for line in world.steps(number)}
    assert worlds == {2}, f"ranks in a step: {worlds}\n{world.story(number)}"
    preemptors = [event["preemptor"] for event in world.server.all_events() if event["kind"] == "stop-began" and event["job"] == number]
    assert preemptors == [owner], f"stopped for {preemptors}, not for {owner}\n{world.story(number)}"


def an_elastic_gang_shrinks_and_grows(world, report):
    """PyTorch's elastic agents meet anew at each change, and the program goes on with as many ranks."""
    try:
        keys = world.torch.job(name="elastic", launch="torchrun", tasks=2, min_tasks=1, gpus=1)
    except Skipped as why:
        report.skip("elastic", why)
        return
    keys["command"] += ["--elastic", "--step-ms", "20"]
    job = world.submit("elastic", **keys)

    def trains_with(ranks):
        seen = len(world.steps(job))
        eventually(f"a step of {ranks} ranks", lambda: world.is_done(job) or any(
            line["world"] == ranks for line in world.steps(job)[seen:]), PATIENCE_S)
        assert not world.is_done(job), f"it ended\n{world.story(job)}"

    def shrinks_and_grows():
        trains_with(2)
        for _ in range(CYCLES):
            owner = world.owner("elastic", 7, seconds=3600)
            trains_with(1)
            world.server.ask("DELETE", f"/v1/jobs/{owner}")
            trains_with(2)
        assert {line["attempt"] for line in world.steps(job)} == {1}, "it was started anew"

    report.check(f"an elastic gang below torchrun gave back a task and took it again, {CYCLES} times", shrinks_and_grows)


class Report:
    def __init__(self):
        self.passed, self.failures, self.skipped = 0, 0, 0

    def check(self, rule, tried):
        begin = time.monotonic()
        try:
            tried()
            self.passed += 1
            print(f"{rule} ({time.monotonic() - begin:.0f} s)")
        except Exception:  # noqa: BLE001: the next rule is tried all the same
            self.failed(rule)

    def failed(self, rule):
        self.failures += 1
        print("FAILED:", rule)
        traceback.print_exc(file=sys.stdout)

    def skip(self, rule, why):
        self.skipped += 1
        print(f"SKIPPED: {rule}: {why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python")
    world, report = World(parser.parse_args().python), Report()

    def tried(rule):
        begin = time.monotonic()
        try:
            rule(world, report)
        except Exception:  # noqa: BLE001: the other rule is tried all the same
            report.failed(rule.__name__.replace("_", " "))
        print(f"{rule.__name__.replace('_', ' ')}: {time.monotonic() - begin:.0f} s")

    try:
        both = [threading.Thread(target=tried, args=(rule,)) for rule in (jobs_are_reclaimed_and_go_on, an_elastic_gang_shrinks_and_grows)]
        for one in both:
            one.start()
        for one in both:
            one.join()
    finally:
        for job in world.server.all("/v1/jobs"):
            world.server.ask("DELETE", f"/v1/jobs/{job['id']}")
        eventually("no process is left", lambda: not processes_of(world.directory), PATIENCE_S)
        world.server.stop()
    if report.failures == 0:
        shutil.rmtree(world.directory, ignore_errors=True)
    else:
        print("evidence is in", world.directory)
    print(f"{report.passed} passed, {report.failures} failed, {report.skipped} skipped")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()

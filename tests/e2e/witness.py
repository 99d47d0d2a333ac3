#!/usr/bin/env python3
"""What the live test runs as a task: it bears witness, from outside of berth, to when it held which GPUs.

For each GPU it was given it takes an exclusive lock on a file of that GPU: a lock that is taken means that two tasks hold
one GPU. It leaves a file of its own for each (job, attempt, task): one that is there already means that a task ran twice.
"""
import fcntl
import json
import os
import signal
import sys
import time

directory, seconds = sys.argv[1], float(sys.argv[2])
job, attempt, task = os.environ["BERTH_JOB"], os.environ["BERTH_ATTEMPT"], os.environ["BERTH_TASK"]


def violation(text):
    with open(os.path.join(directory, "violations"), "a") as file:
        file.write(f"job {job} attempt {attempt} task {task}: {text}\n")


asked = []
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda *_: asked.append(True))

name = os.path.join(directory, f"run-{job}-{attempt}-{task}")
try:
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
except FileExistsError:
    violation("started twice")
leaked = [key for key in os.environ if "TOKEN" in key and key not in ("BERTH_TASK_TOKEN", "BERTH_JOB_TOKEN")]
if leaked or len(os.environ.get("SECRET_OF_THE_SERVER", "")):
    violation(f"sees the server's environment: {leaked}")

locks = []
for uuid in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
    lock = open(os.path.join(directory, "gpu-" + uuid), "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        violation(f"GPU {uuid} is held by another task")
    locks.append(lock)

progress = os.path.join(os.environ["BERTH_CHECKPOINT_DIR"], f"progress-{task}")
done = float(open(progress).read()) if os.path.exists(progress) else 0.0
while done < seconds and not asked:
    time.sleep(0.02)  # allowed: this is the work of a job
    done += 0.02
with open(progress + ".new", "w") as file:
    file.write(str(done))
os.rename(progress + ".new", progress)
if asked and task == "0":
    ack = os.path.join(os.environ["BERTH_CHECKPOINT_DIR"], "ack.json")
    with open(ack + ".new", "w") as file:
        json.dump({"attempt": int(attempt), "step": int(done * 50), "time": time.time()}, file)
    os.rename(ack + ".new", ack)

#!/usr/bin/env python3
"""The quickstart's story ends well, and leaves nothing running: at its end, when it is stopped in the middle, after --stay."""
import os
import signal
import subprocess
import sys
import tempfile

from patience import stretched
from server import ROOT, berth_binary


def processes_with(marker):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if marker in file.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            continue
    return found


MARKER = "berth-quickstart-"
STORY = os.path.join(ROOT, "examples", "quickstart", "story.py")


def what_is_left(before):
    processes, directories = before
    left = [f"process {pid}" for pid in set(processes_with(MARKER.encode())) - processes]
    return left + [f"directory {name}" for name in directories_with() - directories]


def directories_with():
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith(MARKER)}


def check_signal(number, problems):
    """Ended in the middle, while jobs run, it leaves as little as at its end."""
    before = set(processes_with(MARKER.encode())), directories_with()
    story = subprocess.Popen([sys.executable, STORY], env={**os.environ, "BERTH": berth_binary()}, stdout=subprocess.PIPE, text=True)
    for line in story.stdout:
        if "Team B trains" in line:
            break
    story.send_signal(number)
    story.communicate(timeout=stretched(120))
    if story.returncode != 128 + number:
        problems.append(f"{number!r}: the story ended with {story.returncode}")
    problems += [f"{number!r}: {what} is left" for what in what_is_left(before)]


def check_stay(problems):
    """What --stay leaves up, the line that it prints stops, jobs included."""
    before = set(processes_with(MARKER.encode())), directories_with()
    environment = {**os.environ, "BERTH": berth_binary()}
    told = subprocess.run([sys.executable, STORY, "--stay"], env=environment, capture_output=True, text=True).stdout
    exports = dict(word.split("=", 1) for line in told.splitlines() if "export " in line for word in line.split()[1:])
    submitted = subprocess.run([berth_binary(), "submit", "--queue", "team-a", "--gpus", "2", "--", "sleep", "600"],
                               env={**os.environ, **exports}, capture_output=True, text=True)
    if submitted.returncode != 0:
        problems.append(f"--stay: a job was refused: {submitted.stderr}")
    words = told.split("./quickstart --stop ")[-1].split()
    stopped = subprocess.run([sys.executable, STORY, "--stop", words[0]], env=environment, capture_output=True, text=True)
    if stopped.returncode != 0:
        problems.append(f"--stop ended with {stopped.returncode}: {stopped.stderr}")
    problems += [f"--stop: {what} is left" for what in what_is_left(before)]


def main():
    before = set(processes_with(MARKER.encode())), directories_with()
    done = subprocess.run([sys.executable, STORY], env={**os.environ, "BERTH": berth_binary()}, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    problems = []
    if done.returncode != 0:
        problems.append(f"the story ended with {done.returncode}")
    for line in ("none twice", "they add up", "it borrows", "ends: preempted"):
        if line not in done.stdout:
            problems.append(f"the story does not say '{line}'")
    problems += [f"{what} is left" for what in what_is_left(before)]
    check_signal(signal.SIGTERM, problems)
    check_stay(problems)
    for problem in problems:
        print("FAILED:", problem)
    print(f"{0 if problems else 1} passed, {1 if problems else 0} failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

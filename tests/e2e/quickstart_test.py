#!/usr/bin/env python3
"""The quickstart's story ends well, and leaves nothing running."""
import os
import subprocess
import sys

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


def main():
    before = set(processes_with(b"berth-quickstart-"))
    story = os.path.join(ROOT, "examples", "quickstart", "story.py")
    done = subprocess.run([sys.executable, story], env={**os.environ, "BERTH": berth_binary()}, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    problems = []
    if done.returncode != 0:
        problems.append(f"the story ended with {done.returncode}")
    for line in ("none twice", "they add up", "it borrows", "ends: preempted"):
        if line not in done.stdout:
            problems.append(f"the story does not say '{line}'")
    left = set(processes_with(b"berth-quickstart-")) - before
    if left:
        problems.append(f"processes are left: {sorted(left)}")
    for problem in problems:
        print("FAILED:", problem)
    print(f"{0 if problems else 1} passed, {1 if problems else 0} failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

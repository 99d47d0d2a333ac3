#!/usr/bin/env python3
"""Prometheus' own promtool reads the example rules and configuration, and runs the rules' tests.

promtool is Debian's, installed or from the cache (debian.py).
"""
import os
import subprocess
import sys

import debian
from server import ROOT

FOLDER = os.path.join(ROOT, "examples", "prometheus")


def main():
    try:
        promtool = os.path.join(debian.fetched(["prometheus"], alone=True), "usr/bin/promtool")
    except debian.NotToBeHad as problem:
        print(f"SKIPPED: no promtool: {problem}")
        sys.exit(77)
    passed = failed = 0
    for words in (["check", "rules", "berth-rules.yml"], ["check", "config", "--syntax-only", "prometheus.yml"],
                  ["test", "rules", "berth-rules-test.yml"]):
        answer = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True)
        passed, failed = passed + (answer.returncode == 0), failed + (answer.returncode != 0)
        if answer.returncode != 0:
            print("FAILED: promtool", *words, "\n" + answer.stdout + answer.stderr)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

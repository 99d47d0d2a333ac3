#!/usr/bin/env python3
"""Prometheus' own promtool reads the example rules and configuration, and runs the rules' tests.

promtool is Debian's, installed or from the cache (debian.py).
"""
import os
import re
import subprocess
import sys

import debian
from server import ROOT

FOLDER = os.path.join(ROOT, "examples", "prometheus")


def alerts_without_both():
    """The alerts that no test shows both firing and resolved, or not firing."""
    fires, quiet, named = set(), set(), set()
    for name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, name)) as file:
            text = file.read()
        named |= set(re.findall(r"- alert: (\w+)", text))
        fires |= set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n", text))
        quiet |= set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", text))
    assert named, FOLDER
    return sorted(named - (fires & quiet))


def main():
    try:
        promtool = os.path.join(debian.fetched(["prometheus"], alone=True), "usr/bin/promtool")
    except debian.NotToBeHad as problem:
        print(f"SKIPPED: no promtool: {problem}")
        sys.exit(77)
    passed = failed = 0
    for words in (["check", "rules", "berth-rules.yml", "node-rules.yml"], ["check", "config", "--syntax-only", "prometheus.yml"],
                  ["test", "rules", "berth-rules-test.yml"], ["test", "rules", "long-rules-test.yml"]):
        answer = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True)
        passed, failed = passed + (answer.returncode == 0), failed + (answer.returncode != 0)
        if answer.returncode != 0:
            print("FAILED: promtool", *words, "\n" + answer.stdout + answer.stderr)
    for alert in alerts_without_both():
        failed += 1
        print("FAILED: no test in which it fires, or none in which it does not:", alert)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

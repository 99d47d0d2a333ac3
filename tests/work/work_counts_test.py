#!/usr/bin/env python3
"""Counts the work of a placement, a submit, an explanation, an iteration and an event of the simulation, and compares it
with the figures in work_counts.json.

    tests/work/work_counts_test.py PROGRAM [--rewrite] [--without-valgrind]

The program is build/dev/tests/work/work_counts. A figure that is more than 10 % above or below its line fails the test:
above, something became slower; below, the file must say so, or the gain is lost again unseen. --rewrite writes the file.
Changing it is a commit of its own that says why.

Instructions are counted by callgrind. Without valgrind they are left out, and the test says so.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "work_counts.json")
TOLERANCE_PERCENT = 10
ABOUT = ("Work per step, counted with fixed inputs by the build dev (g++, -O1, assertions on). The test work_counts_test "
         "fails if a figure is more than 10 % away from its line. To change a line is a commit of its own that says "
         "which work was added or saved, and why: build/dev/tests/work/work_counts by work_counts_test.py --rewrite.")


def instructions(folder):
    """By kind, from what callgrind wrote: one file for each kind, which names it."""
    counts = {}
    for path in glob.glob(os.path.join(folder, "callgrind.out.*")):
        with open(path) as file:
            text = file.read()
        kind = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if kind and total:
            counts[kind[1]] = int(total[1])
    return counts


def count(program, valgrind):
    """The figures per step, by kind and counter."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program]
        if valgrind:
            command = [valgrind, "--tool=callgrind", "--instr-atstart=no", "--quiet",
                       f"--callgrind-out-file={folder}/callgrind.out", program]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}")
        kinds = json.loads(done.stdout)
        for kind, total in (instructions(folder) if valgrind else {}).items():
            kinds[kind]["instructions"] = total
    for kind in kinds.values():
        steps = kind.pop("steps")
        for counter, total in list(kind.items()):
            kind[counter] = float(f"{total / steps:.5g}")
            if total == 0:
                del kind[counter]
    return kinds


def compare(expected, found):
    """Prints a table; returns the lines that are too far off."""
    wrong = []
    print(f"{'work per step':<22} {'counter':<16} {'figure':>12} {'counted':>12} {'diff':>8}")
    for kind, counters in expected.items():
        for counter, figure in counters.items():
            now = found.get(kind, {}).get(counter)
            if now is None:
                if counter != "instructions":
                    wrong.append(f"{kind}: {counter} was not counted")
                continue
            percent = 100 * (now - figure) / figure
            print(f"{kind:<22} {counter:<16} {figure:>12} {now:>12} {percent:>+7.1f}%")
            if abs(percent) > TOLERANCE_PERCENT:
                wrong.append(f"{kind}: {counter} is {now}, {percent:+.1f} % from {figure}")
    for kind, counters in found.items():
        wrong += [f"{kind}: {counter} has no line" for counter in counters if counter not in expected.get(kind, {})]
    return wrong


def self_test():
    """A figure that is too far off, one that is missing and one without a line fail; one that is near passes."""
    figures = {"why": {"allocations": 100.0, "instructions": 1000.0}}
    assert not compare(figures, {"why": {"allocations": 109.0, "instructions": 905.0}})
    assert not compare(figures, {"why": {"allocations": 100.0}})
    for found in ({"allocations": 111.0}, {"allocations": 89.0}, {"instructions": 1000.0},
                  {"allocations": 100.0, "instructions": 1101.0}, {"allocations": 100.0, "attempts": 1.0}):
        assert len(compare(figures, {"why": found})) == 1, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--rewrite", action="store_true", help="write the figures instead of comparing them")
    parser.add_argument("--without-valgrind", action="store_true", help="count no instructions")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not options.program:
        parser.error("which program?")
    valgrind = None if options.without_valgrind else shutil.which("valgrind")
    found = count(options.program, valgrind)
    if options.rewrite:
        if not valgrind:
            sys.exit("the figures are written with instructions, and valgrind is not there")
        with open(FILE, "w") as file:
            json.dump({"about": ABOUT, "per_step": found}, file, indent=2)
            file.write("\n")
        return
    with open(FILE) as file:
        wrong = compare(json.load(file)["per_step"], found)
    if not valgrind:
        print("valgrind is not there: instructions were not compared")
    if wrong:
        sys.exit("\n".join(["", "More than 10 % from tests/work/work_counts.json:"] + wrong + [
            "Find what changed it. If it is meant, write the file anew with --rewrite, in a commit that says why."]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A simulated month comes out the same to the micro-unit by a program that shares nothing with berth (recompute.py) and by
the sums of hledger; and a month of which events are left out does not.

    recompute_test.py PATH-OF-export_month"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import recompute

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import debian

# With MIG, renamed queues, lost nodes, growth, preemption. Around the hour that is there twice, and the one that is not.
LIVES = [(1, 1500, "2026-10-25T00:30:00Z"), (6, 600, "2026-03-29T00:20:00Z"), (11, 500, "1970-01-01")]
skipped = 0


def exported(program, seed, steps, begin):
    directory = tempfile.mkdtemp(prefix="berth-month-")
    try:
        subprocess.run([program, str(seed), str(steps), directory, begin], check=True)
        texts = []
        for name in ("events.jsonl", "invoice.txt", "invoice.journal"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                texts.append(file.read())
        return texts
    finally:
        shutil.rmtree(directory)


def head_of(invoice):
    return invoice.split("\n", 1)[0].split("\t")


def billed_again(lines, invoice):
    head = head_of(invoice)
    return recompute.recompute(lines, int(head[2]), int(head[3]), head[1])


def first_difference(one, other):
    pairs = zip(one.split("\n"), other.split("\n"))
    return next((f"{a!r} is not {b!r}" for a, b in pairs if a != b), "one is longer")


def check_month(program, seed, steps, begin):
    events, invoice, journal = exported(program, seed, steps, begin)
    lines = events.splitlines()
    again = billed_again(lines, invoice)
    assert again == invoice, f"seed {seed}: " + first_difference(invoice, again)
    kinds = {json.loads(line)["kind"] for line in lines}
    assert {"attempt-started", "attempt-ended", "node-status-changed", "charge-promoted", "prices-applied"} <= kinds, kinds
    check_journal(journal, int(head_of(invoice)[11]))
    return lines, invoice


def check_journal(journal, total_micro):
    global skipped
    try:
        hledger = os.path.join(debian.fetched(["hledger"]), "usr/bin/hledger")
    except debian.NotToBeHad as problem:
        skipped += 1
        print("SKIPPED: the sums of hledger:", problem)
        return
    run = subprocess.run([hledger, "-f", "-", "balance", "liabilities:berth", "--format", "%(total)", "--no-total"],
                         input=journal, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert run.returncode == 0, run.stderr
    shown = run.stdout.split()[0].replace(".", "").replace(",", "")
    assert int(shown) == -total_micro, (run.stdout, total_micro)


def check_that_it_can_fail(lives):
    """Without the promotions, or with nodes that were never lost, a month comes out otherwise."""
    for kind in ("charge-promoted", "node-status-changed"):
        assert any(billed_again([line for line in lines if json.loads(line)["kind"] != kind], invoice) != invoice
                   for lines, invoice in lives), kind


def main():
    program = sys.argv[1]
    lives = []
    for seed, steps, begin in LIVES:
        lines, invoice = check_month(program, seed, steps, begin)
        assert "\toff_peak\t" in invoice, begin
        print(f"seed {seed}: {len(lines)} events, {invoice.count(chr(10))} rows, 0 micro-units off")
        lives.append((lines, invoice))
    check_that_it_can_fail(lives[::-1])
    print(f"{len(LIVES) + 1} passed, 0 failed, {skipped} skipped")


if __name__ == "__main__":
    main()

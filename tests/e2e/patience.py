#!/usr/bin/env python3
"""How tests wait: for a fact, as long as this machine needs, and never for a time. A test that ran into the end of its patience
says what it waited for, for how long, and what it saw last.

    patience.py [--slower N]    prints how much slower this machine is than the one that the patience of the tests is meant for
    patience.py --self-test     a wait that is in vain fails, and says for what

./test hands that number to every test as BERTH_PATIENCE; a test that is run alone measures it itself. That something does NOT
happen is shown by a later fact: another job has started, a later event is there, a counter of cycles has moved on.
"""
import argparse
import functools
import hashlib
import os
import select
import socket
import sys
import threading
import time

MOST = 8
REFERENCE_S = 0.1  # for ROUNDS on each core of an idle machine that is as fast as they come today
ROUNDS = 200_000


def measured():
    """Wall time of a fixed piece of work on every core at once, by the reference: at least 1, at most MOST."""
    work = [threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"berth", b"patience", ROUNDS))  # without Python's lock
            for _ in range(len(os.sched_getaffinity(0)))]
    began = time.monotonic()
    for one in work:
        one.start()
    for one in work:
        one.join()
    return min(MOST, max(1.0, (time.monotonic() - began) / REFERENCE_S))


@functools.cache
def factor():
    """What every patience is multiplied by."""
    given = os.environ.get("BERTH_PATIENCE")
    if not given:
        return measured()
    try:
        value = float(given)
    except ValueError:
        value = 0
    if not 1 <= value <= 100:
        raise SystemExit(f"BERTH_PATIENCE: {given!r} is no number from 1 to 100; see tests/e2e/patience.py")
    return value


def stretched(patience_s):
    """The same patience on this machine; for time-outs of others, such as that of a connection."""
    return patience_s * factor()


class Patience:
    """A wait that is paced by others."""

    def __init__(self, patience_s=60):
        self.patience_s, self.began = patience_s, time.monotonic()

    def waited_s(self):
        return time.monotonic() - self.began

    def is_over(self):
        return self.waited_s() > stretched(self.patience_s)

    def __str__(self):
        return f"not within {self.waited_s():.0f} s ({self.patience_s} s times {factor():.1f})"


def eventually(what, holds, patience_s=60, every_s=0.05):
    """The first true value of `holds()`. `what` is a text, or a function that gives one in the end."""
    patience = Patience(patience_s)
    while True:
        value = holds()
        if value:
            return value
        if patience.is_over():
            raise AssertionError(f"{patience}: {what() if callable(what) else what}; the last answer: {value!r}")
        time.sleep(every_s)


def read_until(source, wanted, patience_s=60):
    """What a connection or a pipe says until `wanted` is in it, or it ends; and whether it has ended. One that goes on without
    a word is a failure. Nothing of it may be in a buffer of Python's."""
    end, seen = time.monotonic() + stretched(patience_s), b""
    while wanted not in seen:
        if not select.select([source], [], [], max(0.0, end - time.monotonic()))[0]:
            raise AssertionError(f"it neither said {wanted!r} nor ended within {stretched(patience_s):.0f} s; it said {seen[-2000:]!r}")
        try:
            more = os.read(source.fileno(), 65536)
        except ConnectionError:
            more = b""
        if not more:
            return seen, True
        seen += more
    return seen, False


def fails_with(words, tried):
    try:
        tried()
    except (AssertionError, SystemExit) as failure:
        return all(word in str(failure) for word in words)
    return False


def self_test():
    os.environ["BERTH_PATIENCE"] = "2"
    answers = iter([None, 0, "there"])
    ours, theirs = socket.socketpair()
    ours.sendall(b"one two")
    checks = {"the first true value is returned": eventually("it is there", lambda: next(answers), every_s=0) == "there",
              "a wait in vain says for what, how long, and what it saw last": fails_with(
                  ["it comes", "0.01 s times 2.0", "the last answer: []"], lambda: eventually("it comes", list, 0.01, 0.001)),
              "what it was waiting for may be said in the end": fails_with(
                  ["now 7"], lambda: eventually(lambda: f"now {3 + 4}", list, 0.01, 0.001)),
              "a stream is read until it says so": read_until(theirs, b"two") == (b"one two", False),
              "a stream that goes on without a word is a failure": fails_with(["neither said"], lambda: read_until(theirs, b"x", 0.01))}
    ours.close()
    checks["a stream that ends is told"] = read_until(theirs, b"x") == (b"", True)
    factor.cache_clear()
    os.environ["BERTH_PATIENCE"] = "soon"
    checks["a factor that is none is refused"] = fails_with(["BERTH_PATIENCE", "'soon'"], factor)
    del os.environ["BERTH_PATIENCE"]
    checks["a measured factor is within its bounds"] = 1 <= factor() <= MOST
    for what, holds in checks.items():
        print("passed:" if holds else "FAILED:", what)
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slower", type=float, default=1, help="the build under test is this much slower, as with a sanitizer")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    print(f"{measured() * options.slower:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

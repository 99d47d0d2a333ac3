#!/usr/bin/env python3
"""Adds up what the tests of one build said, and prints a table of rings that ends with `N passed, N failed, N skipped`.

    tools/test_report.py build/dev
    tools/test_report.py build/dev --once-more
    tools/test_report.py --budgets build/ci.parts

reads, from that folder, tests.xml (ctest's JUnit), tests.json (ctest's own list, for labels) and steps/RING.log: what other
programs printed, with their exit code in steps/RING.rc. Counted is the finest thing a program speaks of: doctest's cases,
or a last line of the form `N passed, N failed, N skipped`, or else the program as one test. A test that cannot run here
prints `SKIPPED: reason` and passes (a doctest case) or exits with 77 (a program).

Races. Real processes on a busy machine can fail although nothing is wrong, so ./test runs a failed test of the rings e2e,
kubernetes and node once more, alone. With --once-more this prints the names of those. What came of it is read from again.xml.
A test that passes then, and skips no more than at first, counts as passed, and the line `flaky: NAME (first: what failed at first)` before the count names it
as a race; the file `flaky` beside the folder has these lines, too. Where more than two such tests failed, none is run once
more, and all count. All other rings are exact or seeded: what fails there once has failed.

With --budgets it reads the parts that .ci/run has timed, and names each ring of ./test that took more than
tools/ring-budgets.txt gives it.
"""

import dataclasses
import json
import re
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

RINGS = ["house", "unit", "scenario", "property", "simulation", "web", "e2e", "kubernetes", "node", "fuzz"]
RING_BY_NAME = [("scenario", "scenario"), ("property", "property"), ("sim_test", "unit"), ("sim_system|planted", "simulation"),
                ("^kubernetes_", "kubernetes"), ("^node_", "node"), ("e2e|live|quickstart", "e2e"), ("fuzz", "fuzz")]
ROOT = Path(__file__).resolve().parent.parent
RING_SECONDS = re.compile(r"^(\d+) test: the tests of ring (\w+), summed$", re.M)
RACING = ("e2e", "kubernetes", "node")  # the rings of real processes
MOST_RACES = 2
CASES = re.compile(r"^\[doctest\] test cases:\s*(\d+) \|\s*(\d+) passed \|\s*(\d+) failed \|\s*(\d+) skipped", re.M)
ASSERTIONS = re.compile(r"^\[doctest\] assertions:\s*(\d+) \|", re.M)
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", re.M)
SKIPPED = re.compile(r"SKIPPED: *(.+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FAILURE = re.compile(r"^(?:TEST CASE: .*|.*: (?:FATAL )?ERROR: .*|FAILED: .*|\w*Error: .*)$", re.M)
FILTERS = re.compile(r"--?(dt-)?(tc|ts|sf|tce|tse|sfe|test-case|test-suite|source-file)[a-z-]*=")


@dataclasses.dataclass
class Tally:
    programs: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    assertions: int = 0
    seconds: float = 0

    def add(self, other):
        for field in dataclasses.fields(Tally):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def tally(output, ok, ran, seconds, filtered=False):
    """What one program's output amounts to. A program that failed has at least one failed test, whatever it printed."""
    text = COLOUR.sub("", output)
    result = Tally(programs=1, seconds=seconds, assertions=sum(int(number) for number in ASSERTIONS.findall(text)))
    reasons = SKIPPED.findall(text)
    cases, summaries = CASES.findall(text), SUMMARY.findall(text)
    if not ran:
        result.skipped = 1
    elif cases:
        filtered = filtered or "test case CRASHED" in text  # what came after the crash was not skipped, it was lost
        for _, passed, failed, undone in cases:
            result.passed += int(passed)
            result.failed += int(failed)
            result.skipped += 0 if filtered else int(undone)
        result.passed -= min(len(reasons), result.passed)
        result.skipped += len(reasons)
    elif summaries:
        result.passed, result.failed, result.skipped = (int(number or 0) for number in summaries[-1])
    elif ok:
        result.passed = 1
    if not ok:
        result.failed = max(result.failed, 1)
    return result, reasons


def causes(output):
    """The first three lines that say what failed: doctest's cases and checks, or a script's cases and exceptions."""
    lines = [line.strip() for line in FAILURE.findall(COLOUR.sub("", output))]
    return "; ".join(line[:200] for line in dict.fromkeys(lines[:3]))


def ring_of(name, labels):
    for label in labels:
        if label in RINGS:
            return label
    return next((ring for pattern, ring in RING_BY_NAME if re.search(pattern, name)), "unit")


def cases_of(report):
    """The tests that a JUnit file of ctest speaks of, by name."""
    text = report.read_text(errors="replace") if report.exists() else "<none/>"
    text = re.sub(r"[^\t\n\r\x20-\uffff]", "?", text)
    return {case.get("name"): case for case in xml.fromstring(text).iter("testcase")}


def ctest_results(build):
    """(ring, name, output, ok, ran, seconds, filtered) of every test that ctest was asked to run."""
    listed = {test["name"]: test for test in json.loads((build / "tests.json").read_text())["tests"]}
    cases = cases_of(build / "tests.xml")
    for name in sorted(listed.keys() - cases.keys()):
        yield ring_of(name, []), name, "ctest did not report on this test", False, True, 0.0, False
    for name, case in cases.items():
        properties = {item["name"]: item["value"] for item in listed.get(name, {}).get("properties", [])}
        filtered = any(FILTERS.match(word) for word in listed.get(name, {}).get("command", []))
        skip = case.find("skipped")
        chosen_to_skip = skip is not None and "SKIP" in skip.get("message", "")
        yield (ring_of(name, properties.get("LABELS", [])), name, case.findtext("system-out") or "",
               case.get("status") == "run" or chosen_to_skip, not chosen_to_skip, float(case.get("time")), filtered)


def step_results(build):
    for log in sorted((build / "steps").glob("*.log")):
        ring, _, name = log.stem.partition(".")
        code, seconds = log.with_suffix(".rc").read_text().split()
        yield ring, name, log.read_text(errors="replace"), code in ("0", "77"), code != "77", float(seconds), False


def once_more(build):
    """The names of the tests that ./test runs a second time."""
    failed = [name for ring, name, output, ok, ran, seconds, filtered in ctest_results(build)
              if ring in RACING and tally(output, ok, ran, seconds, filtered)[0].failed]
    return failed if len(failed) <= MOST_RACES else []


def passed_at_last(build):
    """(output, seconds) of the tests that were run once more and passed then, by name."""
    again = {}
    for name, case in cases_of(build / "again.xml").items():
        output, seconds = case.findtext("system-out") or "", float(case.get("time"))
        ok = case.get("status") == "run"
        if ok and not tally(output, ok, True, seconds)[0].failed:
            again[name] = output, seconds
    return again


def budgets(table):
    rows = [line.split() for line in table.splitlines() if line.strip() and not line.startswith("#")]
    return {ring: int(seconds) for ring, seconds in rows}


def over_budget(parts, table):
    given = budgets(table)
    return [f"over budget: the tests of ring {ring} took {seconds} s, summed; tools/ring-budgets.txt gives them {given[ring]} s"
            for seconds, ring in RING_SECONDS.findall(parts) if ring in given and int(seconds) > given[ring]]


def self_test():
    """Each kind of output, and what it must come to: (output, ok, ran) and (passed, failed, skipped)."""
    cases = "[doctest] test cases:  5 |  4 passed |  1 failed | 0 skipped\n[doctest] assertions: 90 | 89 passed | 1 failed |\n"
    good = cases.replace(" 4 passed |  1 failed", " 5 passed |  0 failed")
    expected = [
        ((good, True, True), (5, 0, 0)),
        ((cases, False, True), (4, 1, 0)),
        ((good, False, True), (5, 1, 0)),  # every case passed, and then it crashed
        ((cases.replace("| 0 skipped", "| 7 skipped") + "FATAL ERROR: test case CRASHED: SIGABRT", False, True), (4, 1, 0)),
        (("a.cc(3): MESSAGE: SKIPPED: needs root\n" + good, True, True), (4, 0, 1)),
        (("", False, True), (0, 1, 0)),
        (("", True, True), (1, 0, 0)),
        (("SKIPPED: no GPU\n", True, False), (0, 0, 1)),
        (("x\n7 passed, 0 failed, 2 skipped\n", True, True), (7, 0, 2)),
        (("7 passed, 0 failed, 2 skipped\n", False, True), (7, 1, 2)),
    ]
    wrong = 0
    for arguments, counts in expected:
        result, _ = tally(*arguments, 0.0)
        if (result.passed, result.failed, result.skipped) != counts:
            wrong += 1
            print(f"self-test: {arguments} came to {result}, not {counts}")
    said = {"x\n[doctest] run\na.cc(3):\nTEST CASE:  it adds\n\na.cc(7): ERROR: CHECK( a == b ) is NOT correct!\n":
            "TEST CASE:  it adds; a.cc(7): ERROR: CHECK( a == b ) is NOT correct!",
            "passed: one\nFAILED: two\n  File x\nAssertionError: not within 60 s\n": "FAILED: two; AssertionError: not within 60 s",
            "Segmentation fault\n": ""}
    for output, cause in said.items():
        if causes(output) != cause:
            wrong += 1
            print(f"self-test: {output!r} failed for {causes(output)!r}, not {cause!r}")
    races = self_test_of_races()
    wrong += sum(not right for right in races)
    if ring_of("web_browser", ["web"]) != "web" or ring_of("sched_property_test", []) != "property":
        wrong += 1
        print("self-test: a ring is not told by its label or name")
    parts = ("61 test: build\n61 test: the tests of ring e2e, summed\n60 test: the tests of ring unit, summed\n"
             "99 test: the tests of ring house, summed\n99 sanitizers: the tests of ring unit, summed\n")
    over = over_budget(parts, "# ring seconds\ne2e 60\nunit 60\n")
    if over != ["over budget: the tests of ring e2e took 61 s, summed; tools/ring-budgets.txt gives them 60 s"]:
        wrong += 1
        print(f"self-test: over budget: {over}")
    if unknown := budgets((ROOT / "tools/ring-budgets.txt").read_text()).keys() - set(RINGS):
        wrong += 1
        print(f"self-test: tools/ring-budgets.txt has rings that are not there: {unknown}")
    print(f"{len(expected) + len(said) + len(races) + 3 - wrong} passed, {wrong} failed, 0 skipped")
    return 1 if wrong else 0


def self_test_of_races():
    """Whole runs: (the tests with their ring and whether they pass at first and then), (those run once more, exit code, lines)."""
    bad, good = "FAILED: it holds\n3 passed, 1 failed\n", "4 passed, 0 failed\n"
    flaky = "flaky: {} (first: FAILED: it holds)"
    failed = "failed: {}: FAILED: it holds"
    cases = [
        ({"a": ("e2e", good, None)}, [], 0, ["4 passed, 0 failed, 0 skipped"]),
        ({"a": ("e2e", bad, good)}, ["a"], 0, [flaky.format("a"), "4 passed, 0 failed, 0 skipped"]),
        ({"a": ("e2e", bad, good), "k": ("kubernetes", bad, good)}, ["a", "k"], 0,
         [flaky.format("a"), flaky.format("k"), "8 passed, 0 failed, 0 skipped"]),
        ({"a": ("e2e", bad, bad)}, ["a"], 1, [failed.format("a"), "3 passed, 1 failed, 0 skipped"]),
        ({"a": ("e2e", bad, "SKIPPED: no\n")}, ["a"], 1, [failed.format("a"), "3 passed, 1 failed, 0 skipped"]),
        ({"a": ("e2e", bad, "3 passed, 0 failed, 1 skipped\n")}, ["a"], 1, [failed.format("a"), "3 passed, 1 failed, 0 skipped"]),
        ({"a": ("e2e", bad, None)}, ["a"], 1, [failed.format("a"), "3 passed, 1 failed, 0 skipped"]),  # with --long
        ({"a": ("unit", bad, good)}, [], 1, [failed.format("a"), "3 passed, 1 failed, 0 skipped"]),
        ({"a": ("simulation", bad, good), "b": ("e2e", bad, good)}, ["b"], 1,
         [flaky.format("b"), failed.format("a"), "7 passed, 1 failed, 0 skipped"]),
        ({name: ("e2e", bad, good) for name in "abc"}, [], 1,
         [*(failed.format(name) for name in "abc"), "9 passed, 3 failed, 0 skipped"]),
    ]
    return [race_is_told(*case) for case in cases]


def race_is_told(tests, wanted, code, lines):
    def junit(outputs):
        suite = xml.Element("testsuite")
        for name, output in outputs.items():
            status = "run" if " 0 failed" in output else "notrun" if "SKIPPED" in output else "fail"
            case = xml.SubElement(suite, "testcase", name=name, status=status, time="1.5")
            xml.SubElement(case, "system-out").text = output
        return xml.tostring(suite, encoding="unicode")

    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder) / "dev"
        build.mkdir()
        listed = [{"name": name, "properties": [{"name": "LABELS", "value": [test[0]]}]} for name, test in tests.items()]
        (build / "tests.json").write_text(json.dumps({"tests": listed}))
        (build / "tests.xml").write_text(junit({name: test[1] for name, test in tests.items()}))
        named = once_more(build)
        (build / "again.xml").write_text(junit({name: tests[name][2] for name in named if tests[name][2]}))
        got_code, got = report(build)
        told = (Path(folder) / "flaky").read_text().splitlines()
    last = [line for line in got if line.startswith(("flaky: ", "failed: "))] + got[-1:]
    right = (named, got_code, last, told) == (wanted, code, lines, [line for line in lines if line.startswith("flaky: ")])
    if not right:
        print(f"self-test: {tests} came to {named}, {got_code}, {last}, {told}, not {wanted}, {code}, {lines}")
    return right


def report(build):
    """The exit code and the lines to print."""
    rings, skips, failures, races, lines = {}, [], [], [], []
    again = passed_at_last(build)
    for ring, name, output, ok, ran, seconds, filtered in [*step_results(build), *ctest_results(build)]:
        result, reasons = tally(output, ok, ran, seconds, filtered)
        if result.failed and ring in RACING and name in again:
            second, second_reasons = tally(again[name][0], True, True, seconds + again[name][1], filtered)
            if second.skipped <= result.skipped:
                races.append((name, output))
                result, reasons = second, second_reasons
        rings.setdefault(ring, Tally()).add(result)
        if result.skipped:
            skips.append((name, reasons or [f"{result.skipped} without a stated reason"]))
        if result.failed:
            failures.append((name, output))
    for title, outputs in (("FAILED AT FIRST, passed when run once more, alone", races), ("FAILED", failures)):
        for name, output in outputs:
            lines += ["", f"---- {title}: {name}", *output.strip().splitlines()[-60:]]
    total = Tally()
    lines += ["", f"{'ring':<12}{'programs':>9}{'passed':>9}{'failed':>9}{'skipped':>9}{'assertions':>12}{'time':>10}"]
    for ring in sorted(rings, key=RINGS.index):
        row = rings[ring]
        total.add(row)
        lines.append(f"{ring:<12}{row.programs:>9}{row.passed:>9}{row.failed:>9}{row.skipped:>9}{row.assertions:>12}{row.seconds:>8.1f} s")
    lines += [f"skipped: {name}: {'; '.join(reasons)}" for name, reasons in skips]
    flaky = [f"flaky: {name} (first: {causes(output) or 'its output is above'})" for name, output in races]
    (build.parent / "flaky").write_text("".join(line + "\n" for line in flaky))
    lines += flaky
    lines += [f"failed: {name}: {causes(output) or 'its output is above'}" for name, output in failures]
    lines.append(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return (1 if total.failed or not total.passed else 0), lines


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    if sys.argv[1] == "--budgets":
        lines = over_budget(Path(sys.argv[2]).read_text(), (ROOT / "tools/ring-budgets.txt").read_text())
        print("".join(line + "\n" for line in lines), end="")
        return 0
    build = Path(sys.argv[1])
    if "--once-more" in sys.argv[2:]:
        print("".join(name + "\n" for name in once_more(build)), end="")
        return 0
    code, lines = report(build)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())

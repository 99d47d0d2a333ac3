#!/usr/bin/env python3
"""Checks the house rules that are about text: who includes whom, and what a pure folder may not touch.

    tools/include_table.py              checks src/ against tools/include-table.txt
    tools/include_table.py --self-test  plants one violation of every rule and expects each to be found

A line that has to break a purity rule says so, on it or just above it:  // allowed: REASON
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ("pure", "exact")

# Rules are (what to say, pattern). The headers stand for what they bring; the words catch what comes in sideways.
PURE_HEADERS = re.compile(
    r"chrono|ctime|time\.h|sys/time\.h|thread|mutex|shared_mutex|condition_variable|future|iostream|random|fstream"
    r"|filesystem|unordered_map|unordered_set|unistd\.h|fcntl\.h|sys/.*|netinet/.*|arpa/.*|netdb\.h|spdlog/.*|curl/.*|sqlite3\.h"
    r"|boost/(asio|beast|unordered).*")
PURE_WORDS = [
    ("reads a clock", r"\bstd::chrono\b|\bclock_gettime\s*\(|\bgettimeofday\s*\(|\btime\s*\(\s*(?:nullptr|NULL|0|&)"),
    ("is random", r"\bs?rand\s*\(|\brandom_device\b|\bmt19937"),
    ("starts a thread or takes a lock", r"\bstd::(?:j?thread|mutex|async|condition_variable|lock_guard|unique_lock)\b"),
    ("logs or prints", r"\bstd::(?:cout|cerr|clog)\b|\bf?printf\s*\(|\bf?puts\s*\(|\bspdlog::"),
    ("touches the world", r"\bstd::[io]?fstream\b|\bfopen\s*\(|\bgetenv\s*\(|\bsocket\s*\("),
    ("uses an unordered container", r"\bunordered_(?:multi)?(?:map|set)\b"),
]
EXACT_WORDS = [("uses floating point", r"\bfloat\b|\bdouble\b")]
DEAR_HEADERS = re.compile(r"boost/asio.*|boost/beast.*|CLI/.*|spdlog/.*")
ALLOWED = re.compile(r"//\s*allowed:\s*\S+")


def read_table(text):
    rows, groups = {}, {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        key, _, values = line.partition(":")
        names = [name for name in values.split() if name != "-"]
        (groups if key.strip() in GROUPS else rows)[key.strip()] = names
    return rows, groups


def row_for(path, rows):
    """The row whose name is the longest leading part of `path`, or None."""
    parts = path.split("/")
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in rows:
            return name
    return None


def covers(name, target):
    """`backend/fake` covers what is below it; `backend.h` covers the headers that lie directly in backend/."""
    if name.endswith(".h"):
        folder = name[:-2]
        return target.startswith(folder + "/") and "/" not in target[len(folder) + 1:]
    return target == name or target.startswith(name + "/")


def without_comments_and_strings(text):
    """Blanks both, keeping line breaks, so that words in prose are not taken for code."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
    return token.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def check_includes(path, text, rows):
    row = row_for(path, rows)
    if row is None:
        yield 1, "is in no row of the include table"
        return
    own = path.split("/")[0] if row == path.split("/")[0] else row
    allowed = [own, *rows[row]]
    for number, line in enumerate(text.splitlines(), 1):
        quoted = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if quoted and not any(covers(name, quoted.group(1)) for name in allowed):
            yield number, f'"{quoted.group(1)}" is not in the row "{row}: {" ".join(rows[row]) or "-"}"'
        angled = re.match(r"\s*#\s*include\s*<([^>]+)>", line)
        if angled and path.endswith(".h") and DEAR_HEADERS.fullmatch(angled.group(1)):
            yield number, f"<{angled.group(1)}> is dear to compile: include it in a .cc"


def check_purity(path, text, groups):
    folder = path.split("/")[0]
    if folder not in groups["pure"]:
        return
    words = PURE_WORDS + (EXACT_WORDS if folder in groups["exact"] else [])
    lines = text.splitlines()
    for number, code in enumerate(without_comments_and_strings(text).splitlines(), 1):
        if any(ALLOWED.search(line) for line in lines[max(0, number - 2):number]):
            continue
        header = re.match(r"\s*#\s*include\s*<([^>]+)>", code)
        if header and PURE_HEADERS.fullmatch(header.group(1)):
            yield number, f"{folder} is pure and may not include <{header.group(1)}>"
        if header:
            continue
        for says, pattern in words:
            if re.search(pattern, code):
                yield number, f"{folder} is pure, and this {says}: {lines[number - 1].strip()}"


def check_tree(source, rows, groups):
    """All violations below `source`, as (path, line, message), and the number of files read."""
    found, count = [], 0
    for file in sorted(source.rglob("*")):
        if file.suffix not in (".h", ".cc"):
            continue
        count += 1
        path, text = file.relative_to(source).as_posix(), file.read_text()
        is_test = path.endswith("_test.cc")
        table = {name: cells + ([*groups["pure"], "support"] if is_test else []) for name, cells in rows.items()}
        found += [(path, *violation) for violation in check_includes(path, text, table)]
        if not is_test:
            found += [(path, *violation) for violation in check_purity(path, text, groups)]
    return found, count


def self_test(rows, groups):
    """Every planted line must be found, and every innocent one let through."""
    planted = {
        "base/a.h": '#include "model/job.h"',
        "state/a.cc": '#include "sched/cycle.h"',
        "sched/a.cc": '#include "store/log.h"',
        "sim/a.cc": '#include "backend/local/local.h"',
        "backend/fake/a.cc": '#include "executor/executor.h"',
        "daemon/a.cc": '#include "sim/clock.h"',
        "cli/a.cc": '#include "daemon/loop.h"',
        "nowhere/a.cc": "int x;",
        "api/a.h": "#include <boost/asio.hpp>",
        "model/a.cc": "#include <chrono>",
        "base/b.cc": "#include <random>",
        "billing/a.cc": "#include <unordered_map>",
        "control/a.cc": "const auto now = time(nullptr);",
        "control/b.cc": "int x = rand();",
        "control/c.cc": "std::mutex lock;",
        "control/d.cc": 'printf("%d", x);',
        "control/e.cc": 'auto home = getenv("HOME");',
        "model/b.cc": "std::unordered_set<int> seen;",
        "sched/b.cc": "double share = 0;",
        "state/b.h": "float share;",
        "billing/b.cc": "// allowed:\ndouble without_a_reason;",
    }
    innocent = {
        "model/c.cc": "double parsed = 0;",
        "state/c.cc": '#include "model/job.h"\n// no double, no std::mutex here\nconst char* text = "float time(0)";',
        "state/d.cc": "// allowed: looked up by key, never walked\nstd::unordered_map<int, int> index;",
        "state/d_test.cc": '#include "control/handle.h"\n#include <iostream>',
        "sim/b.cc": '#include "backend/fake/fake.h"\n#include "backend/backend.h"\n#include "sim/clock.h"',
        "backend/local/a.cc": '#include "executor/executor.h"\n#include "backend/backend.h"',
        "store/a.cc": "#include <chrono>",
        "api/b.cc": "#include <boost/asio.hpp>",
    }
    failures = 0
    for path, text, expected in [(p, t, True) for p, t in planted.items()] + [(p, t, False) for p, t in innocent.items()]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text + "\n")
            found, _ = check_tree(Path(folder), rows, groups)
        if bool(found) != expected:
            failures += 1
            print(f"self-test: {path} {'passed unseen' if expected else 'was refused'}: {text!r} {found}")
    print(f"{len(planted) + len(innocent) - failures} passed, {failures} failed, 0 skipped")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    rows, groups = read_table((ROOT / "tools/include-table.txt").read_text())
    if parser.parse_args().self_test:
        return 1 if self_test(rows, groups) else 0
    found, count = check_tree(ROOT / "src", rows, groups)
    for path, line, message in found:
        print(f"src/{path}:{line}: {message}")
    print(f"{count} files read, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The binaries of the release build are hardened, and the supervisor, which runs once for each task, links only what it needs.

Reads the supervisor, which takes the flags of the whole build and is soon built, and the berth program where there is one.
"""
import os
import re
import subprocess
import sys

from server import ROOT

RELEASE = os.path.join(ROOT, "build", "release")
ALLOWED = re.compile(r"(libstdc\+\+|libgcc_s|libc|libm|libboost_json|libyaml-cpp|linux-vdso|ld-linux.*)\.so")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def rules(program):
    """What must hold of a program: (rule, whether it does)."""
    header = output_of("readelf", "-hW", program)
    segments = output_of("readelf", "-lW", program)
    dynamic = output_of("readelf", "-dW", program)
    symbols = output_of("readelf", "--dyn-syms", "-W", program)
    stack = re.search(r"GNU_STACK.*", segments).group(0)
    yield "it is position-independent", "DYN (" in header and "FLAGS_1" in dynamic and "PIE" in dynamic
    yield "its relocations are read-only", "GNU_RELRO" in segments and re.search(r"\bNOW\b", dynamic)
    yield "its stack is not executable", "RWE" not in stack
    yield "no segment is writable and executable", not re.search(r"\bRWE\b", segments)
    yield "its stacks are guarded", "__stack_chk_fail" in symbols
    yield "its calls of the C library are checked", re.search(r"__(mem|str|read|poll|vfprintf|fprintf|snprintf|vsnprintf|fdelt)\w*_chk@", symbols)
    with open(program, "rb") as file:
        content = file.read()
    yield "no test can push its clock", b"--test-clock" not in content
    yield "no test can shorten its waits", b"--shorter-kubernetes-waits" not in content
    if os.uname().machine == "x86_64":
        yield "its indirect branches land on marks", content.count(b"\xf3\x0f\x1e\xfa") > 100
    yield "it has no search path of its own for libraries", "RUNPATH" not in dynamic and "RPATH" not in dynamic


def main():
    built = subprocess.run(["tools/build", "release", "berth_supervise"], capture_output=True, text=True, cwd=ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    supervisor = os.path.join(RELEASE, "berth-supervise")
    programs = [path for path in (supervisor, os.path.join(RELEASE, "berth")) if os.path.exists(path)]
    passed = failed = 0
    checks = [(f"{os.path.basename(program)}: {rule}", holds) for program in programs for rule, holds in rules(program)]
    linked = [line.split()[0] for line in output_of("ldd", supervisor).splitlines()]
    beyond = [name for name in linked if not ALLOWED.match(os.path.basename(name))]
    checks.append((f"the supervisor links only what it needs, and not {beyond}", not beyond))
    for rule, holds in checks:
        passed, failed = passed + bool(holds), failed + (not holds)
        print("" if holds else "FAILED:", rule)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

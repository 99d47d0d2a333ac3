"""The packages of a file of requirements for tests that need them: in a virtual environment of their own, which is made the
first time and kept in ${XDG_CACHE_HOME:-~/.cache}/berth-test/HASH, where HASH is of that file."""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = "requirements.txt"


def venv(requirements=REQUIREMENTS):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    with open(os.path.join(HERE, requirements), "rb") as file:
        return os.path.join(cache, "berth-test", hashlib.sha256(file.read()).hexdigest()[:16])


def program(name, requirements=REQUIREMENTS):
    return os.path.join(venv(requirements), "bin", name)


def make(directory, requirements):
    """Makes the environment; ends the test as skipped, with the reason, where it cannot be had."""
    install = ["install", "-q", "--disable-pip-version-check", "--retries", "2", "--timeout", "20", "--require-hashes", "-r",
               os.path.join(HERE, requirements)]
    shutil.rmtree(directory, ignore_errors=True)
    for step in ([sys.executable, "-m", "venv", directory], [program("python", requirements), "-m", "pip", *install]):
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=600)
            failed, said = done.returncode != 0, done.stderr.strip() or done.stdout.strip()
        except subprocess.TimeoutExpired:
            failed, said = True, "not in ten minutes"
        if failed:
            last = (said.splitlines() or ["no message"])[-1]
            print(f"SKIPPED: the packages of tests/e2e/{requirements} cannot be installed: {last}")
            sys.exit(77)
    open(os.path.join(directory, "complete"), "w").close()


def enter(requirements=REQUIREMENTS):
    """Goes on under a Python that has the packages. Tests that start at the same time wait for the first."""
    directory = venv(requirements)
    if os.path.realpath(sys.prefix) == os.path.realpath(directory):
        return
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with open(directory + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(directory, "complete")):
            make(directory, requirements)
    python = program("python", requirements)
    os.execv(python, [python, os.path.abspath(sys.argv[0]), *sys.argv[1:]])

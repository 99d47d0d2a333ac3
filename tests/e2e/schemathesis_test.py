"""Requests that schemathesis makes up of the served document, good ones and bad ones, to a real server: it takes what
the document allows, refuses what it does not, answers as the document says, and never with a fault of its own.

Needs packages of PyPI: pypi.py. What is left out, and why, says schemathesis.toml."""
import os
import re
import shutil
import subprocess
import sys

import pypi

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = os.environ.get("BERTH_LONG") == "1"


def run_schemathesis(server, seed, examples):
    """Its exit code and what it says. It keeps no example of an earlier run: the same seed sends the same requests."""
    environment = {**os.environ, "BERTH_TOKEN": server.token, "BERTH_SERVER": f"http://127.0.0.1:{server.port}", "PYTHONPATH": HERE}
    command = [pypi.program("schemathesis"), "--config-file", os.path.join(HERE, "schemathesis.toml"), "--no-color", "run",
               f"http://127.0.0.1:{server.port}/openapi.json", "--seed", str(seed), "--max-examples", str(examples)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=server.directory, env=environment,
                          timeout=7200 if LONG else 800)
    return done.returncode, done.stdout


def fill(server):
    """One job runs, one is held, and one is over: those of schemathesis.toml."""
    server.ask("PUT", "/v1/config", {"queues": {"a": {}, "b": {}}})
    server.ask("POST", "/v1/jobs", {"queue": "a", "gpus": 1, "command": ["sleep", "600"], "checkpoint": {"on_signal": True}})
    server.ask("POST", "/v1/jobs", {"queue": "a", "gpus": 1, "command": ["sleep", "600"], "hold": True})
    server.ask("POST", "/v1/jobs", {"queue": "a", "command": ["true"]})


def main():
    pypi.enter()
    from server import Server, fresh_directory
    seeds = range(1, 6) if LONG else [1]
    failed = sent = 0
    for seed in seeds:
        directory = fresh_directory()
        server = Server(directory)
        if not server.start():
            raise SystemExit("the server does not start:\n" + server.tail())
        try:
            fill(server)
            code, said = run_schemathesis(server, seed, 100 if LONG else 10)
            alive = server.process.poll() is None
        finally:
            server.stop()
        count = re.search(r"(\d+) generated", said)
        sent += int(count.group(1)) if count else 0
        if code == 0 and alive and count:
            shutil.rmtree(directory, ignore_errors=True)
            continue
        failed += 1
        print(f"FAILED: seed {seed}: schemathesis ended with {code}; the server {'lives' if alive else 'is dead'}: {server.tail()}")
        print(said)
    print(f"{sent} requests")
    print(f"{len(seeds) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

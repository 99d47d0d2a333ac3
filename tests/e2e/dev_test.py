#!/usr/bin/env python3
"""berth dev at its end: what Ctrl-C leaves running, and how that is ended."""
import os
import shutil
import signal
import subprocess
import sys

from patience import eventually, stretched
from server import Server, berth_binary, fresh_directory, processes_of


def main():
    directory = fresh_directory()
    data = os.path.join(directory, "data")
    stop = [berth_binary(), "dev", "--stop", "--data", data]
    none = subprocess.run(stop, capture_output=True, text=True)
    assert none.returncode == 3 and "there is no berth in" in none.stderr, none
    server = Server(directory)
    assert server.start(), server.tail()
    server.ask("PUT", "/v1/config", {"queues": {"default": None}})
    server.ask("POST", "/v1/jobs", {"command": ["sleep", "600"]})
    eventually("the job runs", lambda: processes_of(directory))
    busy = subprocess.run(stop, capture_output=True, text=True)
    assert busy.returncode == 4, busy
    server.stop()
    assert "1 job goes on running" in server.tail(), server.tail()
    assert processes_of(directory), "the job runs on"
    ended = subprocess.run(stop, capture_output=True, text=True, timeout=stretched(120))
    assert ended.returncode == 0 and "no job is left" in ended.stderr, ended
    assert not processes_of(directory), processes_of(directory)
    dev = subprocess.Popen([berth_binary(), "dev", "--data", data, "--port", "0", "--ready-file", os.path.join(directory, "up")],
                           stderr=subprocess.PIPE, text=True)
    eventually("it is up", lambda: os.path.exists(os.path.join(directory, "up")) or dev.poll() is not None)
    assert dev.poll() is None
    dev.send_signal(signal.SIGINT)
    said = dev.communicate(timeout=stretched(60))[1]
    assert "stopping; no job runs" in said, said
    shutil.rmtree(directory, ignore_errors=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as problem:
        print("FAILED:", problem)
        print("0 passed, 1 failed")
        sys.exit(1)

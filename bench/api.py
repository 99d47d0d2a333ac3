#!/usr/bin/env python3
"""How long an acknowledged submit takes beside heavy reads, and beside an equal CPU load that reads nothing.

The server holds 20,000 jobs. In the loaded phase it also has 300 streams from the first event on, 2,300 connections that
send nothing, and four clients of each heavy read, which ask again as soon as they are answered and discard what they read.
In the base phase, processes that only compute take the CPU instead. Clients of reads and computing processes run at the
priority of the server's long reads.

    bench/run api [--quick] [--program PATH] [--jobs N] [--streams N] [--idle N] [--clients N] [--submits N] [--rate N]
"""
import argparse
import http.client
import json
import multiprocessing
import os
import resource
import selectors
import shutil
import socket
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import server as e2e  # noqa: E402

HEAVY = {
    "snapshot": "/v1/snapshot",
    "advice": "/v1/advice",
    "capacity": "/v1/capacity",
    "metrics": "/metrics",
    "list": "/v1/jobs?sort=-priority&limit=1000",
}
NICE = 10
SUBMITTERS = 4
QUEUES = 10


def config_text():
    queues = "\n".join(f"  q{i}: {{weight: {i + 1}}}" for i in range(QUEUES))
    return f"cluster: bench\nqueues:\n{queues}\n"


def job(number, gpus=None):
    return {"name": f"j{number}", "queue": f"q{number % QUEUES}", "user": f"u{number % 7}",
            "gpus": gpus or 1 + number % 8, "cpus": 0.1, "memory": "64MiB", "command": ["sleep", "3600"]}


class Wire:
    """A connection that is kept, with the token."""

    def __init__(self, port, token):
        self.headers = {"Authorization": "Bearer " + token}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, body):
        self.connection.request("POST", "/v1/jobs", json.dumps(body), {**self.headers, "Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 201:
            raise SystemExit(f"a submit was answered with {answer.status}: {content[:300]}")

    def discard(self, path, scrap):
        """Asks and throws the answer away; returns its status."""
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        while answer.readinto(scrap):
            pass
        return answer.status


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fill(port, token, jobs):
    def work(first):
        wire = Wire(port, token)
        for number in range(first, jobs, 64):
            wire.post(job(number))
    in_threads(64, work)


def measure(port, token, submits, rate):
    """The times of submits in milliseconds, sorted. Each client sends at its own pace, however long an answer takes."""
    took, lock = [], threading.Lock()

    def work(client):
        wire = Wire(port, token)
        begin = time.monotonic() + client / rate
        for i in range(submits // SUBMITTERS):
            time.sleep(max(0.0, begin + i * SUBMITTERS / rate - time.monotonic()))
            sent = time.monotonic()
            wire.post(job(client + i))
            with lock:
                took.append((time.monotonic() - sent) * 1000)
    in_threads(SUBMITTERS, work)
    return sorted(took)


def percentile(values, percent):
    return round(values[min(len(values) - 1, len(values) * percent // 100)], 2)


# --- The loads. Each is a process that runs until it is ended.


def compute():
    os.nice(NICE)
    while True:
        pass


def read_again_and_again(port, token, path, clients, count):
    os.nice(NICE)

    def work(_):
        scrap = bytearray(1 << 18)
        while True:
            try:
                wire = Wire(port, token)
                while True:
                    if wire.discard(path, scrap) == 200:
                        with count.get_lock():
                            count.value += 1
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
    in_threads(clients, work)


def hold_connections(port, token, streams, idle, received, closed, ready):
    """Streams from the first event on, read and discarded, and connections that send nothing."""
    os.nice(NICE)
    selector = selectors.DefaultSelector()
    begin = ("GET /v1/events?follow=true&from=1 HTTP/1.1\r\nHost: bench\r\n"
             f"Authorization: Bearer {token}\r\n\r\n").encode()
    for i in range(streams + idle):
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        if i < streams:
            connection.sendall(begin)
        selector.register(connection, selectors.EVENT_READ)
    ready.set()
    scrap = bytearray(1 << 18)
    while True:
        for key, _ in selector.select():
            try:
                size = key.fileobj.recv_into(scrap)
            except OSError:
                size = 0
            if size == 0:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                closed.value += 1
            received.value += size


def cpu_times():
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return sum(fields), fields[3] + fields[4]


class Phase:
    """What a phase of the measurement took, and how busy the machine was."""

    def __init__(self, port, token, options):
        total, idle = cpu_times()
        self.took = measure(port, token, options.submits, options.rate)
        total, idle = cpu_times()[0] - total, cpu_times()[1] - idle
        self.busy = round(1 - idle / max(1, total), 2)


def end(processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


def begin(target, *arguments):
    process = multiprocessing.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def short_reads(port, token, stop, took):
    """How long a look at one job takes meanwhile."""
    wire, scrap = Wire(port, token), bytearray(1 << 16)
    while not stop.wait(0.1):
        sent = time.monotonic()
        wire.discard("/v1/jobs/1", scrap)
        took.append((time.monotonic() - sent) * 1000)


def loaded_phase(server, options, result):
    port, token = server.port, server.token
    received, closed = multiprocessing.Value("q", 0), multiprocessing.Value("q", 0)
    ready = multiprocessing.Event()
    counts = {name: multiprocessing.Value("q", 0) for name in HEAVY}
    loads = [begin(hold_connections, port, token, options.streams, options.idle, received, closed, ready)]
    if not ready.wait(120):
        raise SystemExit("the streams and idle connections could not be opened in time")
    loads += [begin(read_again_and_again, port, token, HEAVY[name], options.clients, counts[name]) for name in HEAVY]
    time.sleep(1)
    stop, looks = threading.Event(), []
    looking = threading.Thread(target=short_reads, args=(port, token, stop, looks), daemon=True)
    looking.start()
    phase = Phase(port, token, options)
    stop.set()
    looking.join()
    end(loads)
    if len(phase.took) < options.submits // SUBMITTERS * SUBMITTERS or not looks:
        raise SystemExit(f"only {len(phase.took)} of {options.submits} submits were answered beside the load")
    result["reads"] = {name: count.value for name, count in counts.items()}
    result["stream_mib"] = received.value >> 20
    result["connections_closed"] = closed.value
    result["job_p50_loaded_ms"] = percentile(sorted(looks), 50)
    result["job_p99_loaded_ms"] = percentile(sorted(looks), 99)
    return phase


def memory_mib(process):
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmHWM"))


def run(server, options):
    result = {"benchmark": "api", "jobs": options.jobs, "streams": options.streams, "idle": options.idle,
              "clients_of_each_read": options.clients, "submits": options.submits, "submits_per_s": options.rate}
    server.ask("POST", "/v1/jobs", job(0, gpus=8))  # takes all GPUs, so that the others wait
    fill(server.port, server.token, options.jobs)
    time.sleep(1)
    burners = [begin(compute) for _ in range((os.cpu_count() or 1) + 2)]
    base = Phase(server.port, server.token, options)
    end(burners)
    loaded = loaded_phase(server, options, result)
    for name, phase in {"base": base, "loaded": loaded}.items():
        result[f"submit_p50_{name}_ms"] = percentile(phase.took, 50)
        result[f"submit_p99_{name}_ms"] = percentile(phase.took, 99)
        result[f"cpu_busy_{name}"] = phase.busy
    result["ratio"] = round(result["submit_p99_loaded_ms"] / result["submit_p99_base_ms"], 2)
    result["server_peak_mib"] = memory_mib(server.process)
    return result


def tidy_up(server):
    """Ends the one job that runs, so that no process is left."""
    try:
        server.ask("POST", "/v1/nodes/n1/cordon", timeout=60)
        server.ask("DELETE", "/v1/jobs/1", timeout=60)
        end_by = time.monotonic() + 60
        while server.ask("GET", "/v1/jobs/1", timeout=60)["phase"] != "finished" and time.monotonic() < end_by:
            time.sleep(0.1)
    finally:
        server.kill()


def options_of(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "berth"))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--streams", type=int)
    parser.add_argument("--idle", type=int)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--submits", type=int)
    parser.add_argument("--rate", type=float, default=20, help="submits a second")
    options = parser.parse_args(arguments)
    sizes = {"jobs": 500, "streams": 20, "idle": 100, "submits": 40} if options.quick else {
        "jobs": 20_000, "streams": 300, "idle": 2_300, "submits": 600}
    for name, size in sizes.items():
        if getattr(options, name) is None:
            setattr(options, name, size)
    return options


def main():
    options = options_of(sys.argv[1:])
    needed = options.streams + options.idle + 4096
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most == resource.RLIM_INFINITY else min(needed, most), most))
    os.environ["BERTH"] = options.program
    directory = tempfile.mkdtemp(prefix="berth-bench-api-")
    os.chmod(directory, 0o711)  # a server that is root runs the job as another user
    try:
        config = os.path.join(directory, "cluster.yaml")
        with open(config, "w") as file:
            file.write(config_text())
        server = e2e.Server(directory, config=config)
        if not server.start():
            raise SystemExit("the server did not start:\n" + server.tail())
        try:
            result = run(server, options)
        finally:
            tidy_up(server)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

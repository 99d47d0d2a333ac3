#!/usr/bin/env python3
"""The Grafana dashboard of the chart: Grafana's own library knows each of its keys, and a real Prometheus that scrapes a real
server answers each of its expressions with something.

Grafana itself is not to be had here, so no picture of it is made. Prometheus is Debian's, installed or from the cache
(debian.py); the library is from PyPI (pypi.py)."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import traceback
import urllib.error
import urllib.parse
import urllib.request

import debian
import pypi
from patience import eventually, stretched
from server import ROOT, Server, fresh_directory

DASHBOARD = os.path.join(ROOT, "deploy", "helm", "berth", "dashboards", "berth-fleet.json")
LIBRARY = os.environ.get("FAKE_NVML") or os.path.join(ROOT, "build", "dev", "tests", "fake_nvml", "libfake_nvml.so")
CONFIG = """
cluster: shown
gpu_models:
  H100-SXM5-80GB: {weight: 1.0, memory: 80GiB}
queues:
  owner:
    guaranteed: {gpus: 4}
    budget: {gpu_hours: 1000}
  borrower:
scheduling: {grace: 30s}
"""
# Saves when it is asked to, and leaves.
LEAVES = ['sh', '-c', 'trap \'printf "{\\"attempt\\": %d, \\"step\\": 5, \\"time\\": 1}" $BERTH_ATTEMPT >$BERTH_CHECKPOINT_DIR/n; '
          'mv $BERTH_CHECKPOINT_DIR/n $BERTH_CHECKPOINT_DIR/ack.json; exit 0\' USR1; echo there; while :; do sleep 0.05; done']


def dashboard():
    with open(DASHBOARD) as file:
        return json.load(file)


def expressions():
    """Each with the panel that has it, as Grafana sends it for all queues."""
    found = []
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"].replace("$queue", ".*").replace("$__rate_interval", "1m")
            assert "$" not in text, f"{panel['title']}: {text}"
            found.append((panel["title"], text))
    return found


def what_is_lost(ours, theirs, where="dashboard"):
    """The places of a document that the library did not take over as they are."""
    if isinstance(ours, dict):
        if not isinstance(theirs, dict):
            return [where]
        return [lost for key, value in ours.items() for lost in
                (what_is_lost(value, theirs[key], f"{where}.{key}") if key in theirs else [f"{where}.{key}"])]
    if isinstance(ours, list):
        if not isinstance(theirs, list) or len(ours) != len(theirs):
            return [where]
        return [lost for i, value in enumerate(ours) for lost in what_is_lost(value, theirs[i], f"{where}[{i}]")]
    return [] if ours == theirs else [where]


def read_and_written_by_grafanas_library(document):
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard
    plugins.register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(document)))


def grafanas_library_knows_every_key():
    ours = dashboard()
    lost = what_is_lost(ours, read_and_written_by_grafanas_library(ours))
    assert not lost, lost
    wrong = dashboard()
    wrong["panels"][1]["fieldConfig"]["defaults"]["colour"] = "red"
    assert what_is_lost(wrong, read_and_written_by_grafanas_library(wrong)), "a key that is none is found"


def panels_do_not_overlap_and_each_says_what_it_is():
    taken, ids = {}, set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert panel["title"] and panel["id"] not in ids and place["x"] + place["w"] <= 24, panel["title"]
        ids.add(panel["id"])
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    def __init__(self, directory, server):
        self.port = free_port()
        config = os.path.join(directory, "prometheus.yml")
        token = os.path.join(directory, "scraper")
        with open(token, "w") as file:
            file.write(server.ask("POST", "/v1/tokens", {"name": "scraper", "role": "metrics", "expires_in_s": 3600})["token"])
        with open(config, "w") as file:
            json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [
                {"job_name": "berth", "authorization": {"type": "Bearer", "credentials_file": token},
                 "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}]}, file)
        program = os.path.join(debian.fetched(["prometheus"], alone=True), "usr/bin/prometheus")
        self.log = os.path.join(directory, "prometheus.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [program, f"--config.file={config}", f"--storage.tsdb.path={directory}/tsdb", f"--web.listen-address=127.0.0.1:{self.port}",
                 f"--web.console.templates={directory}", f"--web.console.libraries={directory}"], stdout=log, stderr=log)

    def ask(self, expression):
        """The values of an instant query; empty before Prometheus answers."""
        assert self.process.poll() is None, f"Prometheus has ended, see {self.log}"
        try:
            url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
            with urllib.request.urlopen(url, timeout=stretched(10)) as answer:
                told = json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code == 503:  # it listens before it is ready
                return []
            raise AssertionError(f"{expression}: {refused.read().decode()}") from None
        except OSError:
            return []
        return [float(one["value"][1]) for one in told["data"]["result"]]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=stretched(30))


def sleeper(queue, gpus, **more):
    return {"queue": queue, "gpus": gpus, "cpus": "0.1", "memory": "16MiB", "command": ["sleep", "600"], **more}


class World:
    def __init__(self):
        self.directory = fresh_directory()
        config = os.path.join(self.directory, "cluster.yaml")
        with open(config, "w") as file:
            file.write(CONFIG)
        with open(os.path.join(self.directory, "nvml"), "w") as file:
            file.write("count=8\nutilisation=40\n")
        self.server = Server(self.directory, config, gpus=None, flags=["--sample-gpus-ms", "50"])
        assert self.server.start({"BERTH_NVML_PATH": LIBRARY, "BERTH_FAKE_NVML": os.path.join(self.directory, "nvml")}), self.server.tail()
        try:
            self.prometheus = Prometheus(self.directory, self.server)
        except Exception:
            self.server.stop()
            raise

    def submit(self, body):
        return self.server.ask("POST", "/v1/jobs", body)["id"]

    def scraped(self, expression):
        eventually(f"Prometheus has {expression}", lambda: any(value > 0 for value in self.prometheus.ask(expression)))

    def live_a_day(self):
        """Everything that a panel shows happens: jobs succeed, borrow, give way, wait, and never start."""
        self.submit(sleeper("borrower", 1, name="first"))
        self.submit(sleeper("owner", 1, name="second"))
        # Counters have to be seen before they rise.
        self.scraped('berth_started_attempts_total{queue="borrower"}')
        self.scraped('berth_started_attempts_total{queue="owner"}')
        for queue in ("borrower", "owner"):
            self.server.wait_phase(self.submit(sleeper(queue, 1, command=["true"])), "finished")
        for job in self.server.all("/v1/jobs"):
            if job["phase"] != "finished":
                self.server.ask("DELETE", f"/v1/jobs/{job['id']}")
        self.server.wait_idle()
        borrower = self.submit(sleeper("borrower", 8, command=LEAVES, checkpoint={"on_signal": True, "signal": "SIGUSR1", "grace": "30s"}))
        eventually("its task runs", lambda: any(task["phase"] == "running" for task in self.server.ask("GET", f"/v1/jobs/{borrower}")["tasks"]))
        eventually("it says that it is there", lambda: "there" in self.log_of(borrower))
        owner = self.submit(sleeper("owner", 4))
        self.server.wait_phase(owner, "running")
        self.submit(sleeper("owner", 9, tasks=1))
        self.submit(sleeper("owner", 8))

    def log_of(self, job):
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}/v1/jobs/{job}/logs",
                                         headers={"Authorization": "Bearer " + self.server.token})
        with urllib.request.urlopen(request, timeout=stretched(20)) as answer:
            return answer.read().decode(errors="replace")

    def end(self):
        self.prometheus.end()
        for job in self.server.all("/v1/jobs"):
            self.server.ask("DELETE", f"/v1/jobs/{job['id']}")
        self.server.wait_idle()
        self.server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def no_expression_is_empty():
    world = World()
    try:
        world.live_a_day()
        for title, expression in expressions():
            eventually(f"{title} shows something: {expression}",
                       lambda asked=expression: any(value == value for value in world.prometheus.ask(asked)))
        assert not world.prometheus.ask("berth_no_such_family"), "what is not there is empty"
    finally:
        world.end()


def main():
    pypi.enter("requirements-grafana.txt")
    try:
        debian.fetched(["prometheus"], alone=True)
    except debian.NotToBeHad as problem:
        print(f"SKIPPED: no prometheus: {problem}")
        sys.exit(77)
    passed = failed = 0
    for rule in (grafanas_library_knows_every_key, panels_do_not_overlap_and_each_says_what_it_is, no_expression_is_empty):
        try:
            rule()
            passed += 1
        except Exception:  # noqa: BLE001: the next rule is asked all the same
            failed += 1
            print("FAILED:", rule.__name__.replace("_", " "))
            traceback.print_exc()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A server on a machine whose driver says how much its GPUs are driven (tests/fake_nvml): the metrics, the node and the
job that has one of them tell it; where GPUs are simulated nothing does."""
import http.client
import json
import os
import shutil
import subprocess
import sys
import traceback

from patience import eventually, stretched
from server import ROOT, Server, berth_binary, fresh_directory

LIBRARY = os.environ.get("FAKE_NVML") or os.path.join(ROOT, "build", "dev", "tests", "fake_nvml", "libfake_nvml.so")
UUID = "GPU-fa4e0000-0000-4000-8000-%012x"


class World:
    def __init__(self, gpus):
        self.directory = fresh_directory()
        self.settings = os.path.join(self.directory, "nvml")
        self.server = Server(self.directory, gpus=gpus, flags=["--sample-gpus-ms", "50"])
        self.drive(40)
        started = self.server.start({"BERTH_NVML_PATH": LIBRARY, "BERTH_FAKE_NVML": self.settings})
        assert started, self.server.tail()
        self.server.ask("PUT", "/v1/config", {"cluster": "driven", "queues": {"a": {}}})

    def drive(self, percent):
        with open(self.settings + ".new", "w") as file:
            file.write(f"count=2\nutilisation={percent}\n")
        os.rename(self.settings + ".new", self.settings)

    def berth(self, *words):
        done = subprocess.run([berth_binary(), *words, "--server", f"http://127.0.0.1:{self.server.port}", "--token-file",
                               os.path.join(self.server.data, "token")], capture_output=True, text=True, timeout=stretched(30))
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=stretched(20))
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer " + self.server.token})
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return [line for line in lines if "driven_ratio{" in line]

    def run_job(self, **more):
        job = self.server.ask("POST", "/v1/jobs", {"queue": "a", "cpus": "0.1", "memory": "16MiB",
                                                   "command": ["sleep", "600"], **more})["id"]
        self.server.wait_phase(job, "running")
        return job

    def job(self, number):
        return self.server.ask("GET", f"/v1/jobs/{number}")

    def end(self):
        for job in self.server.all("/v1/jobs"):
            self.server.ask("DELETE", f"/v1/jobs/{job['id']}")
        self.server.wait_idle()
        self.server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def what_the_driver_says_is_told_of_gpu_and_job(world):
    eventually("the metrics tell it", world.metrics)
    of_gpu = 'berth_gpu_driven_ratio{pool="default",model="H100-SXM5-80GB",node="n1",gpu="%s"} 0.4'
    assert world.metrics() == [of_gpu % (UUID % 0), of_gpu % (UUID % 1)], world.metrics()  # nobody has them yet
    whole, share = world.run_job(gpus=1), world.run_job(gpus="0.5")
    eventually("the job tells it", lambda: "driven" in world.job(whole))
    driven = world.job(whole)["driven"]
    assert driven["pct"] == 40 and driven["gpus"] == 1 and driven["minutes"] >= 1, driven
    assert world.metrics()[2:] == ['berth_driven_ratio{pool="default",model="H100-SXM5-80GB"} 0.4'], world.metrics()
    assert "\n  driven      40% of its 1 GPU in the last " in world.berth("job", str(whole)), world.berth("job", str(whole))
    table = world.berth("nodes", "n1")
    assert "STATE     UTIL  JOBS" in table and table.count("  40%  ") == 2, table
    assert "driven" not in world.job(share)  # of a GPU that is shared nobody can tell
    world.drive(0)
    eventually("the mean of its minutes falls", lambda: world.job(whole)["driven"]["pct"] < 40)


def no_event_tells_it_and_no_list(world):
    assert not any("driven" in json.dumps(item) for item in world.server.all("/v1/jobs"))
    events = json.dumps(world.server.ask("GET", "/v1/events?from=1&limit=1000")["items"])
    assert "driven_" not in events and "utilis" not in events, events


def simulated_gpus_are_driven_by_nobody(world):
    job = world.run_job(gpus=1)
    later = world.server.ask("POST", "/v1/jobs", {"queue": "a", "cpus": "0.1", "memory": "16MiB", "command": ["sleep", "0.5"]})["id"]
    world.server.wait_phase(later, "finished")  # ten times as long as from one sample to the next
    assert "driven" not in world.job(job) and not world.metrics(), (world.job(job), world.metrics())
    gpus = world.server.ask("GET", "/v1/nodes/n1")["gpus"]
    assert len(gpus) == 2 and not any("driven_pct" in gpu for gpu in gpus), gpus
    assert "in use     -  " in world.berth("nodes", "n1"), world.berth("nodes", "n1")


def main():
    passed, failed = 0, 0
    for gpus, rules in ((None, [what_the_driver_says_is_told_of_gpu_and_job, no_event_tells_it_and_no_list]),
                        ("2xH100-SXM5-80GB", [simulated_gpus_are_driven_by_nobody])):
        world = World(gpus)
        try:
            for rule in rules:
                try:
                    rule(world)
                    passed += 1
                except Exception:  # noqa: BLE001: the next rule is asked all the same
                    failed += 1
                    print("FAILED:", rule.__name__.replace("_", " "))
                    traceback.print_exc()
        finally:
            world.end()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

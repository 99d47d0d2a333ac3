#!/usr/bin/env python3
"""How fast berth binds the pods of a Kubernetes cluster, beside a stand-in that only binds, without thinking, and with
--peers beside kube-scheduler: on one API server with nodes that KWOK plays. All pods are there before a scheduler starts.

    bench/run kubernetes [--nodes 1000] [--pods 5000] [--gangs 1,8,64] [--rounds 3] [--peers]

On a busy machine the CPU time per pod is the figure to compare, and not the pods per second."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "kubernetes"))
from cluster import Cluster, wait_until  # noqa: E402

BERTH = os.environ.get("BERTH") or os.path.join(ROOT, "build", "release", "berth")
GATES, RUNTIME = "GenericWorkload=true", "scheduling.k8s.io/v1beta1=true"  # native gangs
CONFIG = {"cluster": "bench", "queues": {"all": {}}}


class Bench:
    def __init__(self, options):
        self.options = options
        self.cluster = Cluster(gates=GATES, runtime=RUNTIME)
        self.berths = 0

    def program(self, *words):
        """The JSON object that the program `bench` of tests/kubernetes prints."""
        ran = subprocess.run([os.path.join(self.cluster.bin, "bench"), *words], capture_output=True, text=True, check=False,
                             env={**os.environ, "KUBECONFIG": self.cluster.admin, "PATH": self.cluster.bin + ":" + os.environ["PATH"]})
        if ran.returncode != 0:
            raise SystemExit(f"bench {' '.join(words)}: {ran.stderr}")
        return json.loads(ran.stdout)

    def berth_command(self):
        self.berths += 1
        directory = self.cluster.path(f"berth-{self.berths}")
        os.makedirs(directory)
        with open(os.path.join(directory, "cluster.yaml"), "w") as file:
            json.dump(CONFIG, file)
        self.cluster.delete("/apis/coordination.k8s.io/v1/namespaces/default/leases/berth")
        return (f"{BERTH} serve --backend kubernetes --kubeconfig {self.cluster.admin} --data {directory}/data "
                f"--config {directory}/cluster.yaml --port 0 >{directory}/log 2>&1")

    def start_command(self, scheduler):
        if scheduler == "berth":
            return self.berth_command()
        if scheduler == "ceiling":
            return "bench bind -scheduler ceiling"
        return (f"kube-scheduler --kubeconfig={self.cluster.path('kube-scheduler.kubeconfig')} --leader-elect=false "
                f"--bind-address=127.0.0.1 --feature-gates={GATES} --kube-api-qps=5000 --kube-api-burst=5000 >/dev/null 2>&1")

    def measure(self, scheduler, gang):
        name = "default-scheduler" if scheduler == "kube_scheduler" else scheduler
        words = ["run", "-scheduler", name, "-pods", str(self.options.pods), "-start", self.start_command(scheduler), "-timeout", "10m"]
        result = self.program(*words, *(["-gang", str(gang)] if gang > 1 else []))
        self.program("clean")
        wait_until(lambda: not self.cluster.items("/api/v1/namespaces/default/pods?limit=1"), "the pods are gone", 300, 1)
        if not result["complete"]:
            raise SystemExit(f"{scheduler} bound {result['bound']} of {result['pods']} pods: {result}")
        return result

    def compare(self, gang, schedulers):
        found = {scheduler: [] for scheduler in schedulers}
        for number in range(self.options.rounds):  # interleaved
            for scheduler in schedulers:
                found[scheduler].append(self.measure(scheduler, gang))
                print(f"round {number + 1}: {scheduler}, gangs of {gang}: {found[scheduler][-1]}", file=sys.stderr)
        run = {"nodes": self.options.nodes, "pods": self.options.pods, "gang": gang, "rounds": self.options.rounds}
        for scheduler, results in found.items():
            middle = lambda key, results=results: statistics.median(one[key] for one in results)
            run[f"{scheduler}_binds_per_s"] = middle("binds_per_s")
            run[f"{scheduler}_binds_per_s_from_start"] = middle("binds_per_s_from_start")
            run[f"{scheduler}_cpu_ms_per_pod"] = round(1000 * middle("scheduler_cpu_s") / self.options.pods, 3)
            run[f"{scheduler}_memory_mib"] = middle("scheduler_rss_mib")
        ours = found["berth"]
        run["gangs_torn"] = sum(one["torn_gangs"] for one in ours)
        run["nodes_overcommitted"] = sum(one["overcommitted_nodes"] for one in ours)
        return run

    def run(self):
        self.cluster.start()
        self.cluster.patch("/api/v1/namespaces/default", {"metadata": {"annotations": {"berth.dev/queues": "all"}}})
        self.program("nodes", "-count", str(self.options.nodes))
        schedulers = ["ceiling", "berth", *(["kube_scheduler"] if self.options.peers else [])]
        return {"name": "kubernetes", "kubernetes": "1.37.2", "load": os.getloadavg()[0],
                "runs": [self.compare(int(gang), schedulers) for gang in self.options.gangs.split(",")]}


def main():
    parser = argparse.ArgumentParser(prog="bench/run kubernetes", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--gangs", default="1,8,64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", action="store_true", help="kube-scheduler, too")
    options = parser.parse_args()
    began = time.monotonic()
    built = subprocess.run([os.path.join(ROOT, "tests", "kubernetes", "build"), *(["--bench"] if options.peers else ["--measure"])],
                           stdout=subprocess.DEVNULL, check=False)
    if built.returncode != 0:
        raise SystemExit("the programs of Kubernetes could not be built")
    bench = Bench(options)
    try:
        result = bench.run()
    finally:
        bench.cluster.stop()
    shutil.rmtree(bench.cluster.directory, ignore_errors=True)
    print(json.dumps({**result, "seconds": round(time.monotonic() - began, 1)}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How fast berth binds the pods of a Kubernetes cluster, beside a stand-in that only binds, without thinking, and with
--peers beside kube-scheduler: on one API server with nodes that KWOK plays. All pods are there before a scheduler starts.

    bench/run kubernetes [--nodes 1000] [--pods 5000] [--gangs 1,8,64] [--rounds 3] [--peers]

Then, with berth alone: how long a pod waits from its creation to its node at --rate pods a second (bound_p50_ms,
bound_p99_ms, medians of the rounds), how often berth writes for a pod that was bound (writes_per_pod, by the API server's
audit log), and with these pods there how long it takes from a restart to the first bind, and what memory it has then.

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
from cluster import Cluster, eventually  # noqa: E402

BERTH = os.environ.get("BERTH") or os.path.join(ROOT, "build", "release", "berth")
GATES, RUNTIME = "GenericWorkload=true", "scheduling.k8s.io/v1beta1=true"  # native gangs
CONFIG = {"cluster": "bench", "queues": {"all": {}}}


class Bench:
    def __init__(self, options):
        self.options = options
        self.cluster = Cluster(gates=GATES, runtime=RUNTIME, count_writes=True)
        self.user = self.cluster.path("scheduler.kubeconfig")
        self.berths = 0
        self.directory = ""  # of the last berth

    def program(self, *words):
        """The JSON object that the program `bench` of tests/kubernetes prints."""
        ran = subprocess.run([os.path.join(self.cluster.bin, "bench"), *words], capture_output=True, text=True, check=False,
                             env={**os.environ, "KUBECONFIG": self.cluster.admin, "PATH": self.cluster.bin + ":" + os.environ["PATH"]})
        if ran.returncode != 0:
            raise SystemExit(f"bench {' '.join(words)}: {ran.stderr}")
        return json.loads(ran.stdout)

    def berth_command(self):
        self.berths += 1
        directory = self.directory = self.cluster.path(f"berth-{self.berths}")
        os.makedirs(directory)
        with open(os.path.join(directory, "cluster.yaml"), "w") as file:
            json.dump(CONFIG, file)
        self.cluster.delete("/apis/coordination.k8s.io/v1/namespaces/default/leases/berth")
        return " ".join(self.berth_words(directory)) + f" >{directory}/log 2>&1"

    def berth_words(self, directory):
        return [BERTH, "serve", "--backend", "kubernetes", "--kubeconfig", self.user, "--data", f"{directory}/data", "--config",
                f"{directory}/cluster.yaml", "--port", "0"]

    def start_command(self, scheduler):
        if scheduler == "berth":
            return self.berth_command()
        if scheduler == "ceiling":
            return f"env KUBECONFIG={self.user} bench bind -scheduler ceiling"
        return (f"kube-scheduler --kubeconfig={self.cluster.path('kube-scheduler.kubeconfig')} --leader-elect=false "
                f"--bind-address=127.0.0.1 --feature-gates={GATES} --kube-api-qps=5000 --kube-api-burst=5000 >/dev/null 2>&1")

    def measure(self, scheduler, gang):
        name = "default-scheduler" if scheduler == "kube_scheduler" else scheduler
        words = ["run", "-scheduler", name, "-pods", str(self.options.pods), "-start", self.start_command(scheduler), "-timeout", "10m"]
        result = self.program(*words, *(["-gang", str(gang)] if gang > 1 else []))
        self.program("clean")
        eventually("the pods are gone", lambda: not self.cluster.items("/api/v1/namespaces/default/pods?limit=1"), 300, 1)
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

    def one_by_one(self):
        """Pods that come at a steady rate, in medians of the rounds; after the last round they stay."""
        found = []
        before = self.cluster.writes_of_scheduler()
        for number in range(self.options.rounds):
            found.append(self.program("run", "-scheduler", "berth", "-pods", str(self.options.paced_pods), "-rate",
                                      str(self.options.rate), "-start", self.start_command("berth"), "-timeout", "10m"))
            print(f"round {number + 1}: berth, {self.options.rate} pods a second: {found[-1]}", file=sys.stderr)
            if number + 1 < self.options.rounds:
                self.program("clean")
                eventually("the pods are gone", lambda: not self.cluster.items("/api/v1/namespaces/default/pods?limit=1"), 300, 1)
        after = self.cluster.writes_of_scheduler()
        bound = sum(one["bound"] for one in found)
        wrote = {what: count - before.get(what, 0) for what, count in after.items() if count > before.get(what, 0)}
        conditions = wrote.get("pods/status", 0) + wrote.get("events", 0)
        ours = sum(count for what, count in wrote.items() if what not in ("pods/status", "events", "leases", "selfsubjectaccessreviews"))
        middle = lambda key: statistics.median(one[key] for one in found)
        return {"rate": self.options.rate, "paced_pods": self.options.paced_pods,
                "bound_p50_ms": round(1000 * middle("create_to_bind_p50_s"), 1),
                "bound_p99_ms": round(1000 * middle("create_to_bind_p99_s"), 1),
                "writes_per_pod": round(ours / bound, 3), "condition_writes_per_pod": round(conditions / bound, 3), "writes": wrote}

    def restart(self):
        """berth again on the log of the last round, whose pods are all there, and one more pod."""
        self.cluster.delete("/apis/coordination.k8s.io/v1/namespaces/default/leases/berth")
        pods = len(self.cluster.items("/api/v1/namespaces/default/pods"))
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"},
                                                                 "limits": {"nvidia.com/gpu": "1"}}}
        self.cluster.make("/api/v1/namespaces/default/pods", {
            "metadata": {"name": "after-restart"}, "spec": {"schedulerName": "berth", "containers": [container]}})
        with open(os.path.join(self.directory, "log"), "ab") as log:
            began = time.monotonic()
            process = subprocess.Popen(self.berth_words(self.directory), stdout=log, stderr=log)
            path = "/api/v1/namespaces/default/pods/after-restart"
            eventually("the first bind after the restart", lambda: self.cluster.get(path)["spec"].get("nodeName"), 120, 0.02)
            took = time.monotonic() - began
            with open(f"/proc/{process.pid}/status") as file:
                resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
            process.terminate()
            process.wait()
        self.cluster.delete(path, 0)
        return {"restart_to_first_bind_s": round(took, 3), "restart_pods": pods, "restart_memory_mib": round(resident / 1024, 1)}

    def run(self):
        self.cluster.start()
        self.cluster.patch("/api/v1/namespaces/default", {"metadata": {"annotations": {"berth.dev/queues": "all"}}})
        self.program("nodes", "-count", str(self.options.nodes))
        schedulers = ["ceiling", "berth", *(["kube_scheduler"] if self.options.peers else [])]
        runs = [self.compare(int(gang), schedulers) for gang in self.options.gangs.split(",")]
        paced = self.one_by_one()
        return {"name": "kubernetes", "kubernetes": "1.37.2", "load": os.getloadavg()[0], "runs": runs, **paced, **self.restart()}


def main():
    parser = argparse.ArgumentParser(prog="bench/run kubernetes", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--gangs", default="1,8,64")
    parser.add_argument("--rate", type=float, default=50, help="pods a second, for bound_p50_ms and bound_p99_ms")
    parser.add_argument("--paced-pods", type=int, default=1000, help="how many come at that rate")
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

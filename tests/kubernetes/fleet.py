"""berth as the scheduler of a test cluster: a server with the rights of deploy/kubernetes/rbac.yaml and no more, and the
pods and Jobs that people would make."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from cluster import HERE, ROOT, Cluster, condition, eventually, gpus_of, lives, node_of, overcommitted, programs, stretched

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from server import Server, berth_binary, has_test_clock  # noqa: E402

DEPLOY = os.path.join(ROOT, "deploy", "kubernetes")
CONFIG = {"cluster": "test", "topology": ["zone", "rack"],
          "priority_classes": {"production": 1000, "training": {"value": 500, "default": True}, "dev": 100},
          "queues": {"red": {}, "blue": {}}, "scheduling": {"min_runtime": "0s", "grace": "2s"}}


def install(cluster):
    """The namespace, the account and the rights of berth; returns the path of its kubeconfig."""
    for file in ("namespace.yaml", "job-namespaces.yaml", "rbac.yaml"):
        cluster.kubectl("apply", "-f", os.path.join(DEPLOY, file))
    return cluster.account_kubeconfig("berth", "berth")


def shorter_waits(times=10):
    """Flags with which a server waits in a cluster for a part of the time that it would (src/kube/waits.h)."""
    return ["--shorter-kubernetes-waits", str(times)] if has_test_clock() else []


class Fleet:
    """One case: a namespace, nodes and a server of its own, all of which are gone behind it."""

    count = 0

    def __init__(self, cluster, kubeconfig, config=None, queues="red", start=True, flags=()):
        Fleet.count += 1
        self.cluster, self.kubeconfig = cluster, kubeconfig
        self.namespace = f"case{Fleet.count}"
        self.nodes, self.namespaces, self.later = [], [], 0
        self.directory = tempfile.mkdtemp(prefix="case-", dir=cluster.directory)
        self.config = os.path.join(self.directory, "cluster.yaml")
        self.write_config({**CONFIG, **(config or {})})
        self.server = self.new_server("server", flags)
        self.add_namespace(self.namespace, queues)
        if start:
            self.start()

    def write_config(self, config):
        with open(self.config, "w") as file:
            json.dump(config, file)

    def new_server(self, name, flags=()):
        directory = os.path.join(self.directory, name)
        os.makedirs(directory, exist_ok=True)
        server = Server(directory, self.config, gpus=None,
                        flags=["--backend", "kubernetes", "--kubeconfig", self.kubeconfig, "--topology-labels",
                               "topology.kubernetes.io/zone,topology.kubernetes.io/rack", *flags])
        server.node_name = None
        return server

    def start(self, environment=None):
        assert self.server.start(environment), "the server ended:\n" + self.server.tail()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.tell_state()
        if self.server.process is not None:
            if kind is None:
                self.server.stop()
            else:
                self.server.kill()
        for namespace in self.namespaces:
            for kind_of_owner in ("apis/batch/v1/{}/jobs", "apis/apps/v1/{}/deployments"):
                path = "/" + kind_of_owner.format("namespaces/" + namespace)
                self.cluster.ask("DELETE", path + "?propagationPolicy=Background")
            self.cluster.delete(f"/api/v1/namespaces/{namespace}/pods", 0)
            self.cluster.delete(f"/api/v1/namespaces/{namespace}")
        for node in self.nodes:
            self.cluster.delete(f"/api/v1/nodes/{node}")
        eventually("the pods are gone", lambda: not [pod for one in self.namespaces for pod in self.cluster.pods(one)])
        self.cluster.delete("/apis/coordination.k8s.io/v1/namespaces/berth/leases/berth")
        if kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def tell_state(self):
        """What a person would look at when a case has failed."""
        try:
            print(self.cluster.kubectl("get", "nodes,pods", "-n", self.namespace, "-o", "wide"))
            for job in self.cluster.items(f"/apis/batch/v1/namespaces/{self.namespace}/jobs"):
                print(job["metadata"]["name"], json.dumps(job["status"]))
            print(self.berth("jobs", "--all", code=None), self.berth("nodes", code=None))
            print(self.berth("events", code=None), "\n".join(self.server.tail().splitlines()[-25:]))
        except Exception as error:  # whatever it is, the first failure is what counts
            print("(could not look:", error, ")")

    # The world.

    def add_namespace(self, name, queues=None, classes="production, dev"):
        annotations = {"berth.dev/queues": queues, "berth.dev/priority-classes": classes} if queues else {}
        self.cluster.make("/api/v1/namespaces", {"metadata": {"name": name, "annotations": annotations}})
        self.namespaces.append(name)
        eventually("its account", lambda: self.cluster.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))

    def add_nodes(self, count, gpus=8, **more):
        """Returns their names."""
        names = [f"{self.namespace}-n{len(self.nodes) + number}" for number in range(count)]
        for name in names:
            self.cluster.add_node(name, gpus, **more)
            self.nodes.append(name)
        return names

    def pod(self, name, gpus=1, labels=None, annotations=None, namespace=None, **spec):
        """The pod as an object; `spec` adds to it."""
        requests = {"cpu": "1", "memory": "1Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace or self.namespace, "labels": labels or {},
                             "annotations": annotations or {}},
                "spec": {"schedulerName": "berth", "restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
                         "containers": [{"name": "main", "image": "example.com/train:1",
                                         "resources": {"requests": requests, "limits": limits}}], **spec}}

    def make(self, *pods):
        for pod in pods:
            self.cluster.make(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

    def gang(self, name, size, gpus=1, labels=None, **more):
        """Pods that are one gang by their labels."""
        marks = {"berth.dev/group": name, "berth.dev/group-size": str(size), **(labels or {})}
        return [self.pod(f"{name}-{number}", gpus, marks, **more) for number in range(size)]

    def job(self, name, parallelism, gpus=1, labels=None, namespace=None, runs_for=None):
        """An indexed Job, made; its controller makes the pods, and those that berth stopped anew, however often."""
        pod = self.pod("x", gpus, labels, {"berth.test/runs-for": runs_for} if runs_for else None)
        template = {"metadata": {"labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"]},
                    "spec": pod["spec"]}
        space = namespace or self.namespace
        self.cluster.make(f"/apis/batch/v1/namespaces/{space}/jobs", {
            "metadata": {"name": name, "namespace": space},
            "spec": {"parallelism": parallelism, "completions": parallelism, "completionMode": "Indexed", "backoffLimit": 0,
                     "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
                     "template": template}})

    # What is seen.

    def pods(self, prefix="", namespace=None):
        return [pod for pod in self.cluster.pods(namespace or self.namespace) if pod["metadata"]["name"].startswith(prefix)
                and "deletionTimestamp" not in pod["metadata"]]

    def bound(self, prefix="", namespace=None):
        return [pod for pod in self.pods(prefix, namespace) if node_of(pod) and lives(pod)]

    def wait_bound(self, prefix, count, seconds=60, namespace=None):
        """All `count` pods are bound and run; returns them."""
        def holds():
            pods = self.bound(prefix, namespace)
            return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods) and pods
        return eventually(lambda: f"{count} pods {prefix}* run, but {self.states(prefix, namespace)}", holds, seconds)

    def a_later_pod_runs(self, labels=None):
        """A pod that is made now, and needs no GPU, is bound and ends: so berth has seen all that was there before, and has decided
        with it. Then it is gone from the cluster and from berth's live jobs."""
        self.later += 1
        name = f"{self.namespace}-later-{self.later}"
        self.make(self.pod(name, 0, labels))
        self.wait_bound(name, 1)
        self.cluster.delete(f"/api/v1/namespaces/{self.namespace}/pods/{name}", 0)
        eventually(f"pod {name} has ended for berth", lambda: not [job for job in self.server.all("/v1/jobs") if job["name"] == name])

    def states(self, prefix="", namespace=None):
        return {pod["metadata"]["name"]: (node_of(pod), pod["status"].get("phase"), (condition(pod, "PodScheduled") or {}).get(
            "message")) for pod in self.pods(prefix, namespace)}

    def wait_reason(self, name, pattern, seconds=45, namespace=None):
        """The condition of a pending pod says so; returns its message."""
        path = f"/api/v1/namespaces/{namespace or self.namespace}/pods/{name}"

        def said():
            one = condition(self.cluster.get(path), "PodScheduled")
            return one is not None and one["status"] == "False" and re.search(pattern, one.get("message", "")) and one["message"]
        return eventually(lambda: f"{name} says /{pattern}/, but it says {condition(self.cluster.get(path), 'PodScheduled')}",
                          said, seconds)

    def wait_event(self, name, pattern, seconds=45, namespace=None):
        space = namespace or self.namespace
        return eventually(lambda: f"an Event of {name} says /{pattern}/, but {self.cluster.events_of(space, name)}",
                          lambda: next((text for text in self.cluster.events_of(space, name) if re.search(pattern, text)), None), seconds)

    def berth(self, *words, code=0):
        """What the command printed, as a user would see it."""
        ran = subprocess.run([berth_binary(), *words], capture_output=True, text=True, timeout=stretched(60), check=False,
                             env={**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{self.server.port}",
                                  "BERTH_TOKEN_FILE": os.path.join(self.server.data, "token")})
        assert code is None or ran.returncode == code, (words, ran)
        return ran.stdout + ran.stderr

    def outcomes(self, name):
        """How the jobs of this name ended in berth."""
        return [job["outcome"] for job in self.server.all("/v1/jobs?finished=true") if job["name"] == name and job.get("outcome")]

    def node(self, name):
        """The node as berth has it, or None."""
        return next((one for one in self.server.all("/v1/nodes") if one["name"] == name), None)

    def check_room(self):
        over = overcommitted(self.cluster)
        assert not over, f"more GPUs are asked than there are: {over}"


def main(cases, make_cluster=Cluster, **options):
    """Runs each case in one cluster; the last line is the count. Exits 77 where the programs are not built."""
    found, why = programs()
    if found is None:
        print(f"SKIPPED: {why}; `tests/kubernetes/build` or `./test --kubernetes` builds them (12 minutes of CPU time, once)")
        return 77
    chosen = [case for case in cases if len(sys.argv) < 2 or re.search(sys.argv[1], case.__name__)]
    cluster = make_cluster(**options)
    failed = 0
    try:
        cluster.start()
        kubeconfig = install(cluster)
        for case in chosen:
            began = time.monotonic()
            try:
                case(cluster, kubeconfig)
                print(f"passed: {case.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            except BaseException as error:  # a SystemExit of the server class is a failure, too
                failed += 1
                print(f"FAILED: {case.__name__}", flush=True)
                traceback.print_exc(file=sys.stdout)
                if isinstance(error, KeyboardInterrupt):
                    raise
    except BaseException:
        failed += 1
        raise
    finally:
        cluster.stop()
        if failed:
            print("logs are kept in", cluster.directory)
        else:
            cluster.remove()
    print(f"{len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


__all__ = ["Fleet", "HERE", "condition", "gpus_of", "main"]

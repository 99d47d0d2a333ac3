#!/usr/bin/env python3
"""Cases of Kubernetes' own end-to-end tests of its scheduler (1.37.2, test/e2e/scheduling), retold with berth: each names its
original. Where that takes a made-up resource, CPUs or GPUs stand for it. docs/kubernetes.md names those that are not retold.

All run at once on one berth. A case is a generator: it makes nodes and pods of its own, which only it can use, and yields what
has to become true before it goes on, as (a function, what it is)."""
import sys

from cluster import condition, eventually, lives, node_of
from fleet import Fleet, main
from patience import Patience

GATES, RUNTIME = "GenericWorkload=true", "scheduling.k8s.io/v1beta1=true"
PRIORITIES = {"low": 1, "medium": 100, "high": 1000, "critical": 2000, "p1": 1, "p2": 2, "p3": 3, "p4": 4}
PATIENCE_S = 90
FOO = {"key": "example.com/team", "value": "foo", "effect": "NoSchedule"}


class Case:
    """What a case does and sees; its nodes have the label `case`, and its pods select it."""

    def __init__(self, fleet, name):
        self.fleet, self.name = fleet, name
        self.seen = {}  # the pods of the namespace, as of this round

    def nodes(self, count, **more):
        labels = {"case": self.name, **more.pop("labels", {})}
        return self.fleet.add_nodes(count, labels=labels, **more)

    def pod(self, name, gpus=0, cpu=None, labels=None, namespace=None, **spec):
        """The object; `spec` adds to it."""
        given = {"berth.dev/queue": self.name, **(labels or {})}
        selector = {"case": self.name, **spec.pop("nodeSelector", {})}
        pod = self.fleet.pod(f"{self.name}-{name}", gpus, given, namespace=namespace, nodeSelector=selector, **spec)
        if cpu:
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        return pod

    def make(self, name, **more):
        self.fleet.make(self.pod(name, **more))

    def replicas(self, name, count, **more):
        """A ReplicaSet."""
        pod = self.pod(name, **more)
        pod["spec"]["restartPolicy"] = "Always"
        labels = {**pod["metadata"]["labels"], "replicas-of": name}
        self.fleet.cluster.make(f"/apis/apps/v1/namespaces/{self.fleet.namespace}/replicasets", {
            "metadata": {"name": f"{self.name}-{name}"}, "spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": pod["spec"]}}})

    def one(self, name):
        return self.seen.get(f"{self.name}-{name}")

    def all(self, name):
        return [pod for full, pod in self.seen.items() if full.startswith(f"{self.name}-{name}")]

    def running(self, *names, on=None):
        """All of them run, on this node."""
        def holds():
            pods = [self.one(name) for name in names]
            return all(pod and lives(pod) and "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running" and
                       (on is None or node_of(pod) == on) for pod in pods)
        return holds, f"{names} run" + (f" on {on}" if on else "")

    def waits(self, name, word):
        """It has no node, and its condition says why with this word."""
        def holds():
            pod = self.one(name)
            why = pod and condition(pod, "PodScheduled")
            return pod and not node_of(pod) and why and why["status"] == "False" and word in why.get("message", "")
        return holds, f"{name} waits and says '{word}'"

    def leaves(self, *names):
        def holds():
            pods = [self.one(name) for name in names]
            return all(pod is None or not lives(pod) or "deletionTimestamp" in pod["metadata"] for pod in pods)
        return holds, f"{names} leave"

    def stays(self, *names):
        """Asserts it now."""
        assert self.running(*names)[0](), f"{names} run: {self.states()}"

    def states(self):
        return {name: (node_of(pod), pod["status"].get("phase"), (condition(pod, "PodScheduled") or {}).get("message"))
                for name, pod in self.seen.items() if name.startswith(self.name + "-")}


def later_pod(case):
    """A pod that is made now runs, on a node of its own: so berth has seen what was there before, and has decided with it."""
    alone = {"case": case.name + "-later"}
    node, = case.nodes(1, gpus=0, labels=alone)
    case.make("later", nodeSelector=alone)
    yield case.running("later", on=node)


def within(node_label, values):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": node_label, "operator": "In", "values": values}]}]}}}


# predicates.go

def resource_limits(case):
    """validates resource limits of pods that are allowed to run"""
    nodes = case.nodes(2, gpus=0, cpu="10")
    for number, node in enumerate(nodes):
        case.make(f"filler-{number}", cpu="7", affinity=within("kubernetes.io/hostname", [node]))
    yield case.running("filler-0", on=nodes[0])
    yield case.running("filler-1", on=nodes[1])
    case.make("additional", cpu="5")
    yield case.waits("additional", "CPU")


def overhead(case):
    """verify pod overhead is accounted for"""
    case.fleet.cluster.make("/apis/node.k8s.io/v1/runtimeclasses", {
        "metadata": {"name": "heavy"}, "handler": "heavy", "overhead": {"podFixed": {"cpu": "2500m"}}})
    case.nodes(1, gpus=0, cpu="10")
    case.make("filler", cpu="7")
    yield case.running("filler")
    case.make("additional", cpu="2", runtimeClassName="heavy")
    yield case.waits("additional", "CPU")
    case.make("light", cpu="2")
    yield case.running("light")


def selector_of_no_node(case):
    """validates that NodeSelector is respected if not matching"""
    case.nodes(1, gpus=0)
    case.make("restricted", nodeSelector={"label": "nonempty"})
    yield case.waits("restricted", "label")


def selector_of_a_node(case):
    """validates that NodeSelector is respected if matching"""
    node, = case.nodes(1, gpus=0)
    case.nodes(1, gpus=0)
    case.fleet.cluster.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"example.com/e2e": "42"}}})
    case.make("with-labels", nodeSelector={"example.com/e2e": "42"})
    yield case.running("with-labels", on=node)


def affinity_to_no_node(case):
    """validates that NodeAffinity is respected if not matching"""
    case.nodes(1, gpus=0)
    case.make("restricted", affinity=within("foo", ["bar"]))
    yield case.waits("restricted", "foo")


def affinity_to_a_node(case):
    """validates that required NodeAffinity setting is respected if matching"""
    node, = case.nodes(1, gpus=0, labels={"example.com/e2e": "42"})
    case.nodes(1, gpus=0)
    case.make("with-labels", affinity=within("example.com/e2e", ["42"]))
    yield case.running("with-labels", on=node)


def taint_that_is_tolerated(case):
    """validates that taints-tolerations is respected if matching"""
    node, = case.nodes(1, gpus=0, taints=[FOO], labels={"label": "x"})
    case.make("with-tolerations", tolerations=[FOO], nodeSelector={"label": "x"})
    yield case.running("with-tolerations", on=node)


def taint_that_is_not(case):
    """validates that taints-tolerations is respected if not matching"""
    node, = case.nodes(1, gpus=0, taints=[FOO])
    case.make("still-no-tolerations")
    yield case.waits("still-no-tolerations", "taint")
    case.fleet.cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})
    yield case.running("still-no-tolerations", on=node)


def host_port(case):
    """validates that there exists conflict between pods with same hostPort and protocol but one using 0.0.0.0 hostIP"""
    case.nodes(1, gpus=0)
    for name, address in (("pod4", ""), ("pod5", "10.1.2.3")):
        pod = case.pod(name)
        pod["spec"]["containers"][0]["ports"] = [{"hostPort": 54322, "containerPort": 8080, "protocol": "TCP", "hostIP": address}]
        case.fleet.make(pod)
        if name == "pod4":
            yield case.running("pod4")
    yield case.waits("pod5", "54322")


def scheduling_gates(case):
    """validates Pods with non-empty schedulingGates are blocked on scheduling"""
    case.nodes(1, gpus=0)
    case.replicas("gated", 3, schedulingGates=[{"name": "foo"}, {"name": "bar"}])

    def gated():
        pods = case.all("gated")
        return len(pods) == 3 and all((condition(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated" for pod in pods)
    yield gated, "three pods are gated"
    for left in ([{"name": "bar"}], None):
        for pod in case.all("gated"):
            case.fleet.cluster.patch(f"/api/v1/namespaces/{case.fleet.namespace}/pods/{pod['metadata']['name']}",
                                     {"spec": {"schedulingGates": left}})
        if left:
            yield from later_pod(case)
            assert gated() and not any(map(node_of, case.all("gated"))), case.states()
    yield (lambda: [pod["status"].get("phase") for pod in case.all("gated")] == ["Running"] * 3), "all three run"


def claim_with_nodes_that_are_not_there(case):
    """when PVC has node-affinity to non-existent/illegal nodes, the pod should be scheduled normally if suitable nodes exist"""
    node, = case.nodes(1, gpus=0)
    case.nodes(1, gpus=0)
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    cluster, name, space = case.fleet.cluster, case.fleet.namespace + "-data", case.fleet.namespace
    cluster.make("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": {
        **spec, "capacity": {"storage": "2Gi"}, "local": {"path": "/tmp"}, "claimRef": {"namespace": space, "name": "data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node, "no-such-node", "nor-this"]}]}]}}}})
    claims = f"/api/v1/namespaces/{space}/persistentvolumeclaims"
    cluster.make(claims, {"metadata": {"name": "data"}, "spec": {
        **spec, "volumeName": name, "resources": {"requests": {"storage": "2Gi"}}}})
    yield (lambda: cluster.get(claims + "/data")["status"].get("phase") == "Bound"), "the claim is bound"
    case.make("with-claim", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    yield case.running("with-claim", on=node)
    cluster.delete(f"/api/v1/persistentvolumes/{name}")  # it goes with its claim


# preemption.go

def basic_preemption(case, preemptor="high"):
    """validates basic preemption works"""
    nodes = case.nodes(2, gpus=5)
    for number, node in enumerate(nodes):
        for place in range(2):
            case.make(f"pod{number}-{place}", gpus=2, priorityClassName="medium" if number or place else "low",
                      affinity=within("kubernetes.io/hostname", [node]))
    yield case.running("pod0-0", "pod0-1", "pod1-0", "pod1-1")
    case.make("preemptor", gpus=2, priorityClassName=preemptor)
    yield case.running("preemptor", on=nodes[0])
    yield case.leaves("pod0-0")
    case.stays("pod0-1", "pod1-0", "pod1-1")


def critical_pod(case):
    """validates lower priority pod preemption by critical pod"""
    yield from basic_preemption(case, "critical")


def priorities_in_the_end(case):
    """validates various priority Pods preempt expectedly with the async preemption"""
    case.nodes(1, gpus=4)
    low, medium, high = ([f"{name}{number}" for number in range(count)] for name, count in (("low", 4), ("medium", 4), ("high", 2)))
    for name in low:
        case.make(name, gpus=1, priorityClassName="low", terminationGracePeriodSeconds=5)
    yield case.running(*low)
    for name in medium:
        case.make(name, gpus=1, priorityClassName="medium")
    yield case.leaves(*low)
    for name in high:
        case.make(name, gpus=1, priorityClassName="high")
    yield case.running(*high)
    yield (lambda: sum(case.running(name)[0]() for name in medium) == 2), "two of medium priority have the rest"


def disruption_condition(case):
    """validates pod disruption condition is added to the preempted pod"""
    case.nodes(1, gpus=1)
    victim = case.pod("victim", 1, priorityClassName="low")
    victim["metadata"]["finalizers"] = ["example.com/test-finalizer"]
    case.fleet.make(victim)
    yield case.running("victim")
    case.make("preemptor", gpus=1, priorityClassName="high")
    yield (lambda: "deletionTimestamp" in case.one("victim")["metadata"]), "the victim leaves"
    target = condition(case.one("victim"), "DisruptionTarget")
    assert target and target["status"] == "True", case.one("victim")["status"]
    case.fleet.cluster.patch(f"/api/v1/namespaces/{case.fleet.namespace}/pods/{case.name}-victim", {"metadata": {"finalizers": None}})
    yield case.running("preemptor")


def preemption_path(case):
    """runs ReplicaSets to verify preemption running path"""
    case.nodes(1, gpus=0, cpu="10")
    made = {"rs1": set(), "rs2": set(), "rs3": set()}

    def count(name):
        made[name].update(pod["metadata"]["uid"] for pod in case.all(name))
        return len(made[name])
    for name, cpu, priority in (("rs1", "2", "p1"), ("rs2", "3", "p2"), ("rs3", "4500m", "p3")):
        case.replicas(name, 1, cpu=cpu, priorityClassName=priority)
        yield (lambda name=name: count(name) and case.all(name)[0]["status"].get("phase") == "Running"), f"{name} runs"
    case.make("pod4", cpu="5", priorityClassName="p4")
    yield case.running("pod4")
    yield (lambda: (count("rs1"), count("rs2"), count("rs3")) == (2, 2, 1)), "the two of lowest priority were made anew"
    yield from later_pod(case)
    assert (count("rs1"), count("rs2"), count("rs3")) == (2, 2, 1), made


# gang_scheduling.go, workload_aware_preemption.go, limit_range.go

def pod_group(case, name, size):
    case.fleet.cluster.make(f"/apis/scheduling.k8s.io/v1beta1/namespaces/{case.fleet.namespace}/podgroups", {
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": f"{case.name}-{name}"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}}})
    return {"podGroupName": f"{case.name}-{name}"}


def quorum(case):
    """GangScheduling should schedule pods only when quorum is reached"""
    case.nodes(1, gpus=0)
    group = pod_group(case, "test-pg", 2)
    case.make("p1", schedulingGroup=group)
    yield from later_pod(case)
    assert not node_of(case.one("p1")), case.states()
    case.make("p2", schedulingGroup=group)
    yield case.running("p1", "p2")


def a_group_is_preempted_whole(case):
    """WorkloadAwarePreemption should preempt entire group with All disruption mode by a pod group"""
    case.nodes(1, gpus=4)
    for name, priority in (("low", "low"), ("high", "high")):
        group = pod_group(case, name, 2)
        for number in range(2):
            case.make(f"{name}{number}", gpus=2 if name == "low" else 1, priorityClassName=priority, schedulingGroup=group)
        yield case.running(f"{name}0", f"{name}1")
    yield case.leaves("low0", "low1")


def limit_range(case):
    """LimitRange should create a LimitRange with defaults and ensure pod has those defaults applied"""
    space = case.fleet.namespace + "-limits"
    case.fleet.add_namespace(space, case.name)
    case.fleet.cluster.make(f"/api/v1/namespaces/{space}/limitranges", {"metadata": {"name": "defaults"}, "spec": {"limits": [
        {"type": "Container", "defaultRequest": {"cpu": "3"}, "default": {"cpu": "3"}}]}})
    case.nodes(1, gpus=0, cpu="5")
    for name in ("first", "second"):
        pod = case.pod(name, namespace=space)
        del pod["spec"]["containers"][0]["resources"]
        case.fleet.make(pod)
        if name == "first":
            yield case.running("first")
    yield case.waits("second", "CPU")


CASES = [resource_limits, overhead, selector_of_no_node, selector_of_a_node, affinity_to_no_node, affinity_to_a_node,
         taint_that_is_tolerated, taint_that_is_not, host_port, scheduling_gates, claim_with_nodes_that_are_not_there,
         basic_preemption, critical_pod, priorities_in_the_end, disruption_condition, preemption_path, quorum,
         a_group_is_preempted_whole, limit_range]


def name_of(case):
    return case.__name__.replace("_", "-")


def run_all(fleet, chosen):
    """Runs the cases side by side; returns the failures as texts."""
    running = {}
    failures = []
    for one in chosen:
        case = Case(fleet, name_of(one))
        running[case] = (one(case), None, "", Patience(PATIENCE_S))

    def all_are_through():
        pods = fleet.cluster.pods(fleet.namespace) + [pod for space in fleet.namespaces[1:] for pod in fleet.cluster.pods(space)]
        seen = {pod["metadata"]["name"]: pod for pod in pods}
        for case, (steps, holds, what, patience) in list(running.items()):
            case.seen = seen
            try:
                if holds is not None and not holds():
                    assert not patience.is_over(), f"{patience}: {what}; {case.states()}"
                    continue
                holds, what = next(steps)
                running[case] = (steps, holds, what, Patience(PATIENCE_S))
            except StopIteration:
                print(f"passed: {case.name}", flush=True)
                del running[case]
            except Exception as error:  # of this case alone
                failures.append(f"{case.name}: {type(error).__name__}: {error}")
                print("FAILED:", failures[-1], flush=True)
                del running[case]
        return not running
    eventually("all are through", all_are_through, 10 * PATIENCE_S, every_s=0.2)  # each step has a patience of its own
    return failures


def the_cases_of_kubernetes(cluster, kubeconfig):
    for name, value in PRIORITIES.items():
        cluster.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    config = {"priority_classes": {"normal": {"value": 50, "default": True}, **PRIORITIES},
              "queues": {name_of(one): {} for one in CASES}}
    with Fleet(cluster, kubeconfig, config=config, start=False) as fleet:
        cluster.patch(f"/api/v1/namespaces/{fleet.namespace}", {"metadata": {"annotations": {
            "berth.dev/queues": ",".join(name_of(one) for one in CASES), "berth.dev/priority-classes": "*"}}})
        fleet.start()
        try:
            failures = run_all(fleet, CASES)
        finally:
            cluster.ask("DELETE", f"/apis/apps/v1/namespaces/{fleet.namespace}/replicasets?propagationPolicy=Background")
        assert not failures, "\n".join(failures)
        fleet.check_room()


if __name__ == "__main__":
    sys.exit(main([the_cases_of_kubernetes], gates=GATES, runtime=RUNTIME))

#!/usr/bin/env python3
"""berth as the scheduler of a real API server: its nodes, pods, gangs and Jobs, each made as a user would make them."""
import json
import os
import re
import sys

from cluster import Refused, condition, eventually, gpus_of, node_of
from fleet import Fleet, main

# Native gangs (PodGroup) are a beta of this version that is off by default.
GATES, RUNTIME = "GenericWorkload=true", "scheduling.k8s.io/v1beta1=true"


def nodes_appear(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        one, = fleet.add_nodes(1, labels={"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/rack": "r7"})
        plain, = fleet.add_nodes(1, gpus=0)
        eventually("both nodes", lambda: fleet.node(one) and fleet.node(plain))
        lines = {line.split()[0]: line for line in fleet.berth("nodes").splitlines() if line.strip()}
        assert one in lines and "H100" in lines[one], lines
        assert plain in lines and "H100" not in lines[plain], lines
        assert len(fleet.node(one)["gpus"]) == 8 and not fleet.node(plain).get("gpus"), fleet.node(one)
        assert "r7" in json.dumps(fleet.node(one)), fleet.node(one)


def a_pod_is_bound_and_runs(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        fleet.make(fleet.pod("single", 2))
        pod, = fleet.wait_bound("single", 1)
        assert node_of(pod) == node and pod["metadata"]["annotations"].get("berth.dev/task"), pod["metadata"]
        assert condition(pod, "PodScheduled")["status"] == "True"
        eventually("berth says that it runs", lambda: "running" in fleet.berth("jobs", "--all", code=None).lower())
        fleet.cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods/single")
        fleet.make(fleet.pod("next", 8))
        fleet.wait_bound("next", 1)  # its GPUs are free again


def a_gang_is_bound_whole_or_not_at_all(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1, gpus=4)
        gang = fleet.gang("g", 8)
        fleet.make(*gang[:5])
        fleet.a_later_pod_runs()
        assert not fleet.bound("g"), "it is not whole yet"
        fleet.make(*gang[5:])
        fleet.wait_reason("g-0", "room for only 4 of its 8 tasks")
        fleet.wait_event("g-0", "room for only 4")
        assert not fleet.bound("g"), "four GPUs are too few for eight"
        cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods/g-7")
        fleet.add_nodes(1, gpus=4)
        fleet.wait_reason("g-0", "7 of the 8 pods of its group wait")
        fleet.a_later_pod_runs()
        assert not fleet.bound("g"), "no controller makes the eighth again"
        fleet.make(gang[7])
        fleet.wait_bound("g", 8)
        fleet.check_room()


def a_native_pod_group_is_a_gang_that_grows(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1, gpus=4)
        cluster.make(f"/apis/scheduling.k8s.io/v1beta1/namespaces/{fleet.namespace}/podgroups", {
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "native"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
        pods = [fleet.pod(f"native-{number}", 1, schedulingGroup={"podGroupName": "native"}) for number in range(3)]
        fleet.make(*pods[:2])
        fleet.a_later_pod_runs()
        assert not fleet.bound("native"), fleet.states()
        fleet.make(pods[2])
        fleet.wait_bound("native", 3)
        fleet.make(*[fleet.pod(f"native-{number}", 1, schedulingGroup={"podGroupName": "native"}) for number in (3, 4)])
        fleet.wait_bound("native", 4)  # pods beyond its least size start one by one
        fleet.add_nodes(1, gpus=1)
        fleet.wait_bound("native", 5)


def a_job_runs_and_completes(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(2, gpus=4)
        fleet.job("train", 6, runs_for="3s")
        fleet.wait_bound("train", 6)
        path = f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs/train"
        eventually("all six completed", lambda: cluster.get(path)["status"].get("succeeded") == 6)
        eventually(lambda: f"berth says so: {fleet.berth('jobs', '--all', code=None)}",
                   lambda: fleet.outcomes("train") == ["succeeded"])
        fleet.make(fleet.pod("after", 4))
        fleet.wait_bound("after", 1)


def a_cordoned_node_gets_nothing(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        cluster.kubectl("cordon", node)
        fleet.make(fleet.pod("late", 1))
        fleet.wait_reason("late", ".")
        assert not fleet.bound("late")
        cluster.kubectl("uncordon", node)
        fleet.wait_bound("late", 1)


def a_taint_keeps_out_who_does_not_tolerate_it(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1, taints=[{"key": "example.com/team", "value": "x", "effect": "NoSchedule"}])
        fleet.make(fleet.pod("stranger", 1))
        fleet.make(fleet.pod("tolerant", 1, tolerations=[{"key": "example.com/team", "operator": "Equal", "value": "x",
                                                          "effect": "NoSchedule"}]))
        fleet.wait_bound("tolerant", 1)
        assert not fleet.bound("stranger")
        other, = fleet.add_nodes(1, labels={"disk": "nvme"})
        pod, = fleet.wait_bound("stranger", 1)
        assert node_of(pod) == other
        fleet.make(fleet.pod("selects", 1, nodeSelector={"disk": "nvme"}))
        assert node_of(fleet.wait_bound("selects", 1)[0]) == other


def required_node_affinity_is_obeyed_with_every_operator(cluster, kubeconfig):
    def within(*terms):
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}

    def where(operator, *values, key="example.com/rack"):
        return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    with Fleet(cluster, kubeconfig) as fleet:
        small, = fleet.add_nodes(1, labels={"example.com/rack": "r1", "example.com/disks": "2"})
        large, = fleet.add_nodes(1, labels={"example.com/rack": "r2", "example.com/disks": "16"})
        plain, = fleet.add_nodes(1)
        named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [plain]}]}
        wanted = {"in": (within(where("In", "r2", "r3")), {large}), "in-two": (within(where("In", "r1", "r2")), {small, large}),
                  "not-in": (within(where("NotIn", "r1", "r2")), {plain}), "exists": (within(where("Exists")), {small, large}),
                  "lacks": (within(where("DoesNotExist")), {plain}), "over": (within(where("Gt", "8", key="example.com/disks")), {large}),
                  "under": (within(where("Lt", "8", key="example.com/disks")), {small}), "name": (within(named), {plain}),
                  "either": (within(where("In", "r9", "r8"), named), {plain})}
        for name, (affinity, _) in wanted.items():
            fleet.make(fleet.pod(name, 1, affinity=affinity))
        fleet.make(fleet.pod("nowhere", 1, affinity=within(where("In", "r8", "r9"))))
        for name, (_, nodes) in wanted.items():
            pod = next(pod for pod in fleet.wait_bound(name, len([one for one in wanted if one.startswith(name)]))
                       if pod["metadata"]["name"] == name)
            assert node_of(pod) in nodes, (name, node_of(pod), nodes)
        fleet.wait_reason("nowhere", r"rack in \(r8, r9\)")
        cluster.patch(f"/api/v1/nodes/{plain}", {"metadata": {"labels": {"example.com/rack": "r9"}}})
        assert node_of(fleet.wait_bound("nowhere", 1)[0]) == plain


def mig_instances_are_counted_by_the_name_of_their_resource(cluster, kubeconfig):
    slice_of, shared = "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"
    config = {"gpu_models": {slice_of: {"weight": 0.14}}, "queues": {"red": {"max": {f"gpus.{slice_of}": 3}}, "blue": {}}}
    with Fleet(cluster, kubeconfig, config=config, queues="red,blue") as fleet:
        node, = fleet.add_nodes(1, gpus=1, devices={slice_of: 4, shared: 2})
        other, = fleet.add_nodes(1, gpus=1)

        def pod(name, resource, count, queue="blue"):
            one = fleet.pod(name, 0, {"berth.dev/queue": queue})
            one["spec"]["containers"][0]["resources"]["limits"][resource] = str(count)
            one["spec"]["containers"][0]["resources"]["requests"][resource] = str(count)
            return one
        foreign = pod("foreign", slice_of, 1)
        foreign["spec"].update(schedulerName="somebody-else", nodeName=node)
        fleet.make(foreign)
        fleet.wait_bound("foreign", 1)
        fleet.make(pod("parts", slice_of, 2, "red"), pod("shared", shared, 2), *(fleet.pod(f"whole-{number}") for number in range(3)))
        for name in ("parts", "shared"):
            assert node_of(fleet.wait_bound(name, 1)[0]) == node
        assert {node_of(pod) for pod in fleet.wait_bound("whole", 2)} == {node, other}, fleet.states()
        fleet.make(pod("last", slice_of, 1))
        assert node_of(fleet.wait_bound("last", 1)[0]) == node
        fleet.make(pod("over", slice_of, 2, "red"), pod("none-left", slice_of, 1))
        two = fleet.pod("two-kinds", 1)
        two["spec"]["containers"][0]["resources"]["limits"][shared] = "1"
        two["spec"]["containers"][0]["resources"]["requests"][shared] = "1"
        fleet.make(two)
        fleet.wait_reason("over", "max")
        fleet.wait_reason("none-left", "1 free GPU; none is free now")
        fleet.wait_event("two-kinds", "nvidia.com/gpu beside nvidia.com/gpu.shared")
        assert len(fleet.bound("whole")) == 2, "no whole GPU is left, and a part is none"


def pods_keep_away_from_each_other_by_host_and_by_zone(cluster, kubeconfig):
    def apart(app, key="kubernetes.io/hostname", kind="podAntiAffinity"):
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]}}
    zone = "topology.kubernetes.io/zone"
    with Fleet(cluster, kubeconfig) as fleet:
        zones = {}
        for name in ("z1", "z1", "z2"):
            node, = fleet.add_nodes(1, labels={zone: name, "topology.kubernetes.io/rack": name + "-r"})
            zones[node] = name
        pod = fleet.pod("x", 1, {"app": "web"}, affinity=apart("web"))
        pod["spec"]["restartPolicy"] = "Always"
        cluster.make(f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments", {
            "metadata": {"name": "web"}, "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": pod["spec"]}}})
        assert {node_of(pod) for pod in fleet.wait_bound("web", 3)} == set(zones), fleet.states()
        waiting, = [pod["metadata"]["name"] for pod in fleet.pods("web") if not node_of(pod)]
        fleet.wait_reason(waiting, ".")
        fleet.make(*[fleet.pod(f"zonal-{number}", 1, {"app": "zonal"}, affinity=apart("zonal", zone)) for number in range(3)])
        assert sorted(zones[node_of(pod)] for pod in fleet.wait_bound("zonal", 2)) == ["z1", "z2"], fleet.states()
        fleet.make(fleet.pod("beside", 1, affinity=apart("cache", kind="podAffinity")))
        fleet.a_later_pod_runs()
        assert not fleet.bound("beside"), "there is no cache yet"
        fleet.make(fleet.pod("cache", 1, {"app": "cache"}))
        assert node_of(fleet.wait_bound("beside", 1)[0]) == node_of(fleet.wait_bound("cache", 1)[0])
        assert len(fleet.bound("web")) == 3 and len(fleet.bound("zonal")) == 2, fleet.states()


def a_deleted_node_s_gang_runs_elsewhere(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        first, = fleet.add_nodes(1)
        fleet.job("train", 2, gpus=4)
        fleet.wait_bound("train", 2)
        second, = fleet.add_nodes(1)
        cluster.delete(f"/api/v1/nodes/{first}")
        for pod in fleet.pods("train"):  # what the garbage collector of pods does after a minute
            cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods/{pod['metadata']['name']}", 0)

        def moved():
            pods = fleet.bound("train")
            return len(pods) == 2 and {node_of(pod) for pod in pods} == {second}
        eventually(lambda: f"all are on {second}: {fleet.states()}", moved, 90)
        fleet.check_room()


def a_gang_on_a_silent_node_is_replaced_by_its_controller_s_new_pods(cluster, kubeconfig):
    """The node has no kubelet: the node controller finds it unreachable after 50 s, and its pods are deleted but stay."""
    with Fleet(cluster, kubeconfig) as fleet:
        silent = f"{fleet.namespace}-silent"
        room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
        cluster.make("/api/v1/nodes", {"metadata": {"name": silent}, "status": {"capacity": room, "allocatable": room}})
        fleet.nodes.append(silent)
        cluster.patch(f"/api/v1/nodes/{silent}/status", {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it was here"}]}})
        pod = fleet.pod("x", 4, tolerations=[{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                                              "tolerationSeconds": 5} for key in ("unreachable", "not-ready")])
        cluster.make(f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs", {
            "metadata": {"name": "train", "namespace": fleet.namespace},
            "spec": {"parallelism": 2, "completions": 2, "completionMode": "Indexed",
                     "template": {"metadata": {"labels": {}}, "spec": pod["spec"]}}})
        eventually(lambda: f"both are bound to {silent}: {fleet.states()}",
                   lambda: [node_of(pod) for pod in fleet.bound("train")] == [silent, silent])
        well, = fleet.add_nodes(1)

        eventually(lambda: f"two new ones are on {well}: {fleet.states()}",
                   lambda: [node_of(pod) for pod in fleet.bound("train")] == [well, well], 150)
        assert "stopping" in fleet.berth("jobs"), "the old job is charged until its pods are gone"
        fleet.check_room()


def a_drained_node_s_pods_run_elsewhere(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        first, = fleet.add_nodes(1)
        fleet.job("train", 1, gpus=2)
        fleet.wait_bound("train", 1)
        second, = fleet.add_nodes(1)
        cluster.kubectl("drain", first, "--ignore-daemonsets", "--timeout=60s")
        eventually(lambda: f"it is on {second}: {fleet.states()}",
                   lambda: [node_of(pod) for pod in fleet.bound("train")] == [second], 90)


def a_deployment_s_pods_come_and_go(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        pod = fleet.pod("x", 2, {"app": "serve"})
        pod["spec"]["restartPolicy"] = "Always"
        cluster.make(f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments", {
            "metadata": {"name": "serve"}, "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "serve"}}, "template": {
                "metadata": {"labels": {"app": "serve"}}, "spec": pod["spec"]}}})
        fleet.wait_bound("serve", 4)
        fleet.make(fleet.pod("waits", 6))
        fleet.wait_reason("waits", "GPU")
        cluster.kubectl("scale", "deployment", "serve", "--replicas=1", "-n", fleet.namespace)
        fleet.wait_bound("waits", 1)
        assert len(fleet.bound("serve")) == 1, fleet.states()
        fleet.check_room()


def a_namespace_may_go_under_a_running_gang(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        space = fleet.namespace + "-gone"
        fleet.add_namespace(space, "red")
        fleet.job("train", 4, gpus=2, namespace=space)
        fleet.wait_bound("train", 4, namespace=space)
        cluster.kubectl("delete", "namespace", space)
        fleet.namespaces.remove(space)
        fleet.make(fleet.pod("next", 8))
        fleet.wait_bound("next", 1)


def foreign_pods_leave_less_room(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        foreign = fleet.pod("foreign", 6)
        foreign["spec"].update(schedulerName="somebody-else", nodeName=node)
        fleet.make(foreign)
        eventually("it is on the node", lambda: "foreign" in [pod["metadata"]["name"] for pod in fleet.bound()])
        fleet.make(*fleet.gang("g", 4))
        fleet.wait_reason("g-0", "GPU")
        assert not fleet.bound("g")
        fleet.check_room()
        cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods/foreign")
        fleet.wait_bound("g", 4)


def pods_bound_by_others_meanwhile_are_not_counted_twice(cluster, kubeconfig):
    """A pod that names berth, but that somebody else binds: it is foreign use, and berth goes on."""
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        cluster.kubectl("cordon", node)
        fleet.make(fleet.pod("snatched", 6))
        fleet.wait_reason("snatched", ".")
        cluster.make(f"/api/v1/namespaces/{fleet.namespace}/pods/snatched/binding", {
            "metadata": {"name": "snatched"}, "target": {"kind": "Node", "name": node}})
        cluster.kubectl("uncordon", node)
        fleet.make(fleet.pod("small", 2), fleet.pod("large", 4))
        fleet.wait_bound("small", 1)
        fleet.wait_reason("large", "GPU")
        assert not fleet.bound("large"), fleet.states()
        fleet.check_room()


def a_queue_that_is_not_the_namespace_s_is_refused_by_name(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(fleet.pod("thief", 1, {"berth.dev/queue": "blue"}), fleet.pod("honest", 1, {"berth.dev/queue": "red"}))
        assert "blue" in fleet.wait_event("thief", "blue.*namespace|namespace.*blue")
        fleet.wait_bound("honest", 1)
        assert not fleet.bound("thief")
        fleet.add_namespace(fleet.namespace + "-none")
        fleet.make(fleet.pod("unnamed", 1, namespace=fleet.namespace + "-none"))
        fleet.wait_event("unnamed", "berth.dev/queues", namespace=fleet.namespace + "-none")
        assert not fleet.bound(namespace=fleet.namespace + "-none")


def what_is_not_supported_is_refused_by_name(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                   "labelSelector": {"matchLabels": {"a": "b"}}}]
        fleet.make(fleet.pod("spread", 1, topologySpreadConstraints=spread),
                   fleet.pod("devices", 1, resourceClaims=[{"name": "gpu", "resourceClaimName": "none"}]))
        fleet.wait_event("spread", "topologySpreadConstraints")
        fleet.wait_event("devices", "resourceClaims")
        assert not fleet.bound()


def hostile_pods(fleet):
    """Objects that the API server takes, and that a careless scheduler would choke on."""
    huge = fleet.pod("huge-annotation", 1, annotations={"note": "x" * 200_000, "berth.dev/task": "1/1/0/0"})
    bells = fleet.pod("control-characters", 1, annotations={"note": "\u0000\u0007\u001b[2J\u202e" * 100, "berth.dev/queue": "\u001b[31m"})
    absurd = fleet.pod("absurd", 1)
    absurd["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "9223372036854775807", "memory": "8Ei"},
                                                    "limits": {"nvidia.com/gpu": "0"}}
    many = fleet.pod("many-containers", 0)
    many["spec"]["containers"] = [{"name": f"c{number}", "image": "x", "resources": {"requests": {
        "cpu": "9223372036854775"}}} for number in range(600)]
    large = fleet.pod("many-gpus", 4_000_000)
    gang = fleet.pod("endless-gang", 1, {"berth.dev/group": "e", "berth.dev/group-size": "99999999999999999999"})
    minus = fleet.pod("minus-gang", 1, {"berth.dev/group": "m", "berth.dev/group-size": "-1"})
    odd = fleet.pod("odd-resource", 1)
    odd["spec"]["containers"][0]["resources"]["limits"]["example.com/thing"] = "3"
    odd["spec"]["containers"][0]["resources"]["requests"]["example.com/thing"] = "3"
    queue = fleet.pod("path-queue", 1, annotations={"berth.dev/queue": "../../" * 1000})
    return [huge, bells, absurd, many, large, gang, minus, odd, queue]


def hostile_pods_harm_nobody(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        taken = []
        for pod in hostile_pods(fleet):
            try:
                fleet.make(pod)
                taken.append(pod["metadata"]["name"])
            except Refused as refused:
                assert refused.status in (400, 422), (pod["metadata"]["name"], refused)
        assert len(taken) >= 7, taken
        evil = {"metadata": {"name": fleet.namespace + "-evil", "annotations": {"note": "\u0000\u001b" * 50_000}}, "status": {
            "capacity": {"nvidia.com/gpu": "900000000000000", "cpu": "0", "memory": "1m"},
            "allocatable": {"nvidia.com/gpu": "900000000000000", "cpu": "0", "memory": "1m"}}}
        cluster.make("/api/v1/nodes", evil)
        fleet.nodes.append(evil["metadata"]["name"])
        fleet.make(*fleet.gang("good", 4))
        fleet.wait_bound("good", 4)
        assert fleet.server.process.poll() is None, fleet.server.tail()
        for name in set(taken) - {"huge-annotation", "control-characters"}:
            fleet.wait_event(name, ".")
        assert {node_of(pod) for pod in fleet.bound()} == {node}, fleet.states()
        with open(fleet.server.log, "rb") as file:
            log = file.read()
        assert b"\x1b[2J" not in log and b"\x00" not in log and len(log) < 300_000, len(log)
        fleet.check_room()
        assert sum(map(gpus_of, fleet.bound())) <= 8


def a_pod_that_a_rule_forbids_waits_and_says_why(cluster, kubeconfig):
    """Each container and field is named; of a rule that is tried only the event of the job tells."""
    config = {"admission": {"safe": {"use": "baseline", "host_paths": ["/data/*"]},
                            "strict": {"mode": "dry-run", "use": "restricted"}}}
    with Fleet(cluster, kubeconfig, config=config) as fleet:
        fleet.add_nodes(1)
        bad = fleet.pod("bad", 1, hostPID=True, volumes=[{"name": "etc", "hostPath": {"path": "/etc"}},
                                                         {"name": "sets", "hostPath": {"path": "/data/sets"}}])
        bad["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        bad["spec"]["containers"][0]["env"] = [{"name": "HF_TOKEN", "value": "hf_do-not-tell-this-to-anybody"}]
        fleet.make(bad, fleet.pod("good", 1, volumes=[{"name": "sets", "hostPath": {"path": "/data/sets"}}]))
        told = fleet.wait_reason("bad", "container 'main': securityContext.privileged is true; remove it")
        assert "pod: hostPID is true; remove it" in told and "rule 'safe' of the cluster" in told, told
        assert "volume 'etc': hostPath '/etc' is not allowed; allowed are /data/*" in told and "'sets'" not in told, told
        fleet.wait_event("bad", "securityContext.privileged is true")
        fleet.wait_bound("good", 1)
        submitted = [event for event in fleet.server.all_events() if event["kind"] == "job-submitted"]
        assert [event["broken_rules"] for event in submitted] == [[":strict"]], submitted
        assert "do-not-tell-this" not in json.dumps(fleet.server.all_events())
        tried = os.path.join(fleet.directory, "rules.yaml")
        with open(tried, "w") as file:
            json.dump({"admission": {"root": {"forbid": ["root"]}, "ports": {"forbid": ["host-ports"]}}}, file)
        said = fleet.berth("policy", "test", tried, code=1)
        assert "1 would have been refused" in said and "container 'main': securityContext.runAsNonRoot is not true" in said, said
        said = fleet.berth("policy", "show", "-o", "json")
        assert "host-namespaces" in json.dumps(json.loads(said)), said


def rules_are_written_as_policies_that_the_api_server_keeps(cluster, kubeconfig):
    """All that a rule can say of a pod compiles there, refuses what berth would refuse, and lets the rest through."""
    words = ["privileged", "privilege-escalation", "host-namespaces", "host-paths", "host-ports", "added-capabilities",
             "kept-capabilities", "root", "secret-env", "gpus-without-limits", "requests-below-limits", "required-topology"]
    rules = {"digests": {"mode": "warn", "digest": True, "images": ["example.com/*"], "max_time": "1h", "checkpoint": True,
                         "labels": ["team"]},
             **{f"no-{word}": {"forbid": [word], **({"host_paths": ["/data/*"]} if word == "host-paths" else {})} for word in words}}
    with Fleet(cluster, kubeconfig, config={"admission": rules}) as fleet:
        policies = os.path.join(fleet.directory, "policies.yaml")
        with open(policies, "w") as file:
            file.write(fleet.berth("policy", "export"))
        cluster.patch(f"/api/v1/namespaces/{fleet.namespace}", {"metadata": {"labels": {"berth.dev/rules": "cluster"}}})
        cluster.kubectl("apply", "-f", policies)
        pods = f"/api/v1/namespaces/{fleet.namespace}/pods?dryRun=All"

        def pod(security=None, container=None, **spec):
            one = fleet.pod("tried", 1, **spec)
            one["spec"]["containers"][0].update({
                "resources": {"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}},
                "securityContext": {"runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                                    **(security or {})}, **(container or {})})
            return one

        def answer(one):
            try:
                cluster.make(pods, one)
                return ""
            except Refused as refused:
                return str(refused)

        def is_refused(rule, one):
            eventually(lambda: f"rule {rule} refuses it: {answer(one)}", lambda: re.search(rf"rule '{rule}' of the cluster", answer(one)))
        # The API server tells one of the rules that a pod breaks.
        bad = {"privileg.*": pod({"privileged": True, "allowPrivilegeEscalation": True}),
               "privilege-escalation": pod({"allowPrivilegeEscalation": None}), "host-namespaces": pod(hostIPC=True),
               "host-paths": pod(volumes=[{"name": "etc", "hostPath": {"path": "/etc"}}]),
               "host-ports": pod(container={"ports": [{"containerPort": 80, "hostPort": 80}]}),
               "(added|kept)-capabilities": pod({"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}),
               "kept-capabilities": pod({"capabilities": {"drop": ["NET_RAW"]}}), "root": pod({"runAsUser": 0}),
               "secret-env": pod(container={"env": [{"name": "HF_TOKEN", "value": "x"}]}),
               "gpus-without-limits": pod(container={"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}}),
               "requests-below-limits": pod(container={"resources": {"limits": {"cpu": "1", "memory": "1Gi"},
                                                                     "requests": {"cpu": "500m"}}})}
        for word, one in bad.items():
            is_refused("no-" + word, one)
        good = pod(container={"env": [{"name": "A_TOKEN_FILE", "value": "/run/x"}]},
                   volumes=[{"name": "d", "hostPath": {"path": "/data/x"}}])
        assert answer(good) == "", answer(good)
        compiled = cluster.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
        checked = [one.get("status", {}).get("typeChecking", {}) for one in compiled]
        wrong = [one for one in checked if one.get("expressionWarnings")]
        assert not wrong, wrong
        cluster.kubectl("delete", "-f", policies)


if __name__ == "__main__":
    sys.exit(main([nodes_appear, a_pod_is_bound_and_runs, a_gang_is_bound_whole_or_not_at_all,
                   a_native_pod_group_is_a_gang_that_grows,
                   a_job_runs_and_completes, a_cordoned_node_gets_nothing, a_taint_keeps_out_who_does_not_tolerate_it,
                   required_node_affinity_is_obeyed_with_every_operator,
                   mig_instances_are_counted_by_the_name_of_their_resource,
                   pods_keep_away_from_each_other_by_host_and_by_zone,
                   a_deleted_node_s_gang_runs_elsewhere, a_gang_on_a_silent_node_is_replaced_by_its_controller_s_new_pods,
                   a_drained_node_s_pods_run_elsewhere, a_deployment_s_pods_come_and_go,
                   a_namespace_may_go_under_a_running_gang, foreign_pods_leave_less_room,
                   pods_bound_by_others_meanwhile_are_not_counted_twice,
                   a_queue_that_is_not_the_namespace_s_is_refused_by_name, what_is_not_supported_is_refused_by_name,
                   a_pod_that_a_rule_forbids_waits_and_says_why,
                   rules_are_written_as_policies_that_the_api_server_keeps, hostile_pods_harm_nobody], gates=GATES, runtime=RUNTIME))

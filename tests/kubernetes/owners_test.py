#!/usr/bin/env python3
"""Pods of the kinds of others: each is one gang, whole or not at all.

The CRDs are those of the operators, read from the Go module cache; where a module cannot be had, and for Volcano and KAI, a
minimal CRD stands for it. No operator runs here: the test makes the pods as its controller would, with the labels, annotations
and owners that it gives them. Jobs and their pods are those of Kubernetes' own controller."""
import json
import os
import subprocess
import sys

from cluster import Refused, eventually, node_of
from fleet import Fleet, main, shorter_waits

# kind: (group, version, plural, module, path of its CRD)
KINDS = {
    "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets", "sigs.k8s.io/jobset@v0.11.1",
               "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "sigs.k8s.io/lws@v0.8.0",
                        "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"),
    "RayCluster": ("ray.io", "v1", "rayclusters", "github.com/ray-project/kuberay/ray-operator@v1.6.0",
                   "config/crd/bases/ray.io_rayclusters.yaml"),
    **{kind: ("kubeflow.org", "v1", kind.lower() + "s", "github.com/kubeflow/training-operator@v1.9.3",
              f"manifests/base/crds/kubeflow.org_{kind.lower()}s.yaml") for kind in ("PyTorchJob", "TFJob", "MPIJob")},
    "Volcano": ("scheduling.volcano.sh", "v1beta1", "podgroups", None, None),
    "KAI": ("scheduling.run.ai", "v2alpha2", "podgroups", None, None),
}


def minimal_crd(group, version, plural, kind):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}", "annotations": {
                "api-approved.kubernetes.io": "unapproved, a test of berth"}},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


def install_kind(cluster, name):
    """Makes the kind known to the API server, once; says on which CRD it stands."""
    group, version, plural, module, path = KINDS[name]
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    if cluster.get(f"{crds}/{plural}.{group}"):
        return
    file = None
    if module:
        found = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=False)
        folder = json.loads(found.stdout or "{}").get("Dir") if found.returncode == 0 else None
        file = os.path.join(folder, path) if folder else None
    if file:
        cluster.kubectl("create", "-f", file)
    else:
        print(f"{name}: a minimal CRD stands for that of its operator", flush=True)
        cluster.make(crds, minimal_crd(group, version, plural, "PodGroup" if module is None else name))
    eventually(f"{plural} are served", lambda: is_served(cluster, f"/apis/{group}/{version}/{plural}"))


def is_served(cluster, path):
    """A kind that has just been made answers 404 first, and then 429."""
    try:
        return cluster.get(path) is not None
    except Refused as refused:
        assert refused.status == 429, refused
        return False


def make_owner(fleet, name, object_name, spec, labels=None):
    group, version, plural, module, _ = KINDS[name]
    return fleet.cluster.make(f"/apis/{group}/{version}/namespaces/{fleet.namespace}/{plural}", {
        "apiVersion": f"{group}/{version}", "kind": name if module else "PodGroup",
        "metadata": {"name": object_name, "labels": labels or {}}, "spec": spec})


def owned(owner):
    """The reference that a controller writes into what it makes."""
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
             "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]


def template(fleet, gpus=1):
    return {"metadata": {}, "spec": fleet.pod("x", gpus)["spec"]}


# Each returns the pods of a gang of four, as the kind's controller makes them.

def training_pods(kind, member, lead):
    def make(fleet):
        replicas = {role: {"replicas": count, "restartPolicy": "Never", "template": {"spec": {"containers": [
            {"name": "main", "image": "x"}]}}} for role, count in ((lead, 1), ("Worker", 3))}
        owner = make_owner(fleet, kind, "train", {member: replicas})
        pods = []
        for role, number in [("Worker", 0), ("Worker", 1), (lead, 0), ("Worker", 2)]:
            pod = fleet.pod(f"train-{role.lower()}-{number}", 1, {
                "training.kubeflow.org/job-name": "train", "training.kubeflow.org/replica-type": role.lower(),
                "training.kubeflow.org/replica-index": str(number)})
            pod["metadata"]["ownerReferences"] = owned(owner)
            pods.append(pod)
        return pods
    return make


def ray_pods(fleet):
    plain = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    owner = make_owner(fleet, "RayCluster", "ray", {
        "headGroupSpec": {"rayStartParams": {}, "template": plain},
        "workerGroupSpecs": [{"groupName": "gpu", "replicas": 3, "minReplicas": 1, "maxReplicas": 5, "rayStartParams": {},
                              "template": plain}]})
    pods = []
    for number in range(4):
        group = "headgroup" if number == 3 else "gpu"
        pod = fleet.pod(f"ray-{group}-{number}", 1, {"ray.io/cluster": "ray", "ray.io/group": group,
                                                     "ray.io/node-type": "head" if number == 3 else "worker"})
        pod["metadata"]["ownerReferences"] = owned(owner)
        pods.append(pod)
    return pods


def leader_worker_pods(fleet):
    worker = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    make_owner(fleet, "LeaderWorkerSet", "serve", {"replicas": 1, "leaderWorkerTemplate": {
        "size": 4, "workerTemplate": worker}})
    return [fleet.pod("serve-0" + (f"-{number}" if number else ""), 1, {
        "leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": "0",
        "leaderworkerset.sigs.k8s.io/worker-index": str(number)}, {"leaderworkerset.sigs.k8s.io/size": "4"})
            for number in range(4)]


def pod_group_pods(name, annotation):
    def make(fleet):
        make_owner(fleet, name, "group", {"minMember": 4})
        return [fleet.pod(f"grouped-{number}", 1, annotations={annotation: "group"}) for number in range(4)]
    return make


GANGS = {"PyTorchJob": training_pods("PyTorchJob", "pytorchReplicaSpecs", "Master"),
         "TFJob": training_pods("TFJob", "tfReplicaSpecs", "Chief"),
         "MPIJob": training_pods("MPIJob", "mpiReplicaSpecs", "Launcher"),
         "RayCluster": ray_pods, "LeaderWorkerSet": leader_worker_pods,
         "Volcano": pod_group_pods("Volcano", "scheduling.k8s.io/group-name"), "KAI": pod_group_pods("KAI", "pod-group-name")}


def gang_of(name):
    def case(cluster, kubeconfig):
        install_kind(cluster, name)
        with Fleet(cluster, kubeconfig) as fleet:
            fleet.add_nodes(1, gpus=3)
            pods = GANGS[name](fleet)
            fleet.make(*pods[:3])
            fleet.wait_reason(pods[0]["metadata"]["name"], "its controller has made 3 of 4 pods")
            assert not fleet.bound(), fleet.states()
            fleet.make(pods[3])
            # A gang of one group is counted in places of its tasks, one of several groups in GPUs.
            fleet.wait_reason(pods[0]["metadata"]["name"], "room for only 3 of its 4 tasks|ask for 4 GPUs")
            assert not fleet.bound(), "three GPUs are too few for four pods"
            fleet.add_nodes(1, gpus=1)
            fleet.wait_bound("", 4)
            assert len(fleet.server.all("/v1/jobs?finished=true")) == 1, "they are one job"
            fleet.check_room()
    case.__name__ = f"the_pods_of_a_{name}_are_a_gang"
    return case


def make_child_job(fleet, owner, role, number, parallelism):
    """A Job as the JobSet's controller makes it; its pods are made by Kubernetes' own."""
    labels = {"jobset.sigs.k8s.io/jobset-name": owner["metadata"]["name"], "jobset.sigs.k8s.io/replicatedjob-name": role,
              "jobset.sigs.k8s.io/job-index": str(number)}
    pods = template(fleet)
    pods["metadata"]["labels"] = labels
    fleet.cluster.make(f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs", {
        "metadata": {"name": f"set-{role}-{number}", "labels": labels, "ownerReferences": owned(owner)},
        "spec": {"parallelism": parallelism, "completions": parallelism, "completionMode": "Indexed", "template": pods}})


def the_jobs_of_a_JobSet_are_one_gang_in_the_queue_of_its_label(cluster, kubeconfig):
    install_kind(cluster, "JobSet")
    with Fleet(cluster, kubeconfig, queues="red, blue") as fleet:
        nodes = fleet.add_nodes(2, gpus=4)
        roles = [{"name": role, "replicas": replicas, "template": {"spec": {
            "parallelism": parallelism, "completions": parallelism, "completionMode": "Indexed", "template": template(fleet)}}}
                 for role, replicas, parallelism in (("driver", 1, 1), ("workers", 2, 2))]
        owner = make_owner(fleet, "JobSet", "set", {"replicatedJobs": roles}, {"kueue.x-k8s.io/queue-name": "blue"})
        make_child_job(fleet, owner, "workers", 1, 2)
        make_child_job(fleet, owner, "workers", 0, 2)
        first = eventually("four pods are there", lambda: len(fleet.pods("set-")) == 4 and fleet.pods("set-")[0])
        fleet.wait_reason(first["metadata"]["name"], "its controller has made 4 of 5 pods")
        assert not fleet.bound(), fleet.states()
        make_child_job(fleet, owner, "driver", 0, 1)
        pods = fleet.wait_bound("set-", 5)
        job, = fleet.server.all("/v1/jobs")
        assert job["queue"] == "blue" and job["name"] == "set", job
        tasks = {pod["metadata"]["name"].rsplit("-", 1)[0]: pod["metadata"]["annotations"]["berth.dev/task"] for pod in pods}
        ranks = [int(tasks[name].split("/")[2]) for name in
                 ("set-driver-0-0", "set-workers-0-0", "set-workers-0-1", "set-workers-1-0", "set-workers-1-1")]
        assert ranks == [0, 1, 2, 3, 4], tasks
        assert {node_of(pod) for pod in pods} == set(nodes)
        fleet.server.kill()
        fleet.start()
        fleet.a_later_pod_runs({"berth.dev/queue": "blue"})
        assert len(fleet.bound("set-")) == 5 and len(fleet.server.all("/v1/jobs")) == 1, fleet.states()


def a_kind_that_is_installed_later_is_noticed(cluster, kubeconfig):
    group, version, plural = "scheduling.x-k8s.io", "v1alpha1", "podgroups"
    with Fleet(cluster, kubeconfig, flags=shorter_waits()) as fleet:
        fleet.add_nodes(1)
        pods = [fleet.pod(f"late-{number}", 1, {"scheduling.x-k8s.io/pod-group": "late"}) for number in range(2)]
        fleet.make(*pods)
        fleet.wait_reason("late-0", "its PodGroup late is not one of namespace")
        assert not fleet.bound(), fleet.states()
        cluster.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", minimal_crd(group, version, plural, "PodGroup"))
        path = f"/apis/{group}/{version}/namespaces/{fleet.namespace}/{plural}"
        eventually("the kind is served", lambda: is_served(cluster, path))
        cluster.make(path, {"apiVersion": f"{group}/{version}", "kind": "PodGroup", "metadata": {"name": "late"},
                            "spec": {"minMember": 2}})
        fleet.wait_bound("late", 2, 90)


def without_the_right_to_read_a_kind_berth_runs_and_says_so(cluster, kubeconfig):
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-workloads"
    rules = cluster.get(role)["rules"]
    cluster.patch(role, {"rules": [rule for rule in rules if "jobsets" not in rule["resources"]]})
    try:
        with Fleet(cluster, kubeconfig) as fleet:
            fleet.add_nodes(1)
            fleet.make(fleet.pod("plain", 1))
            fleet.wait_bound("plain", 1)
            eventually(lambda: "the log names it: " + fleet.server.tail(),
                       lambda: "list jobsets.jobset.x-k8s.io" in fleet.server.tail())
    finally:
        cluster.patch(role, {"rules": rules})


def completed_pods_of_a_Job_are_not_run_again(cluster, kubeconfig):
    """Two of three indexes have succeeded when the third fails: its controller makes that pod alone, and it starts."""
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1, gpus=3)
        pods = template(fleet)
        cluster.make(f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs", {"metadata": {"name": "train"}, "spec": {
            "parallelism": 3, "completions": 3, "completionMode": "Indexed", "backoffLimit": 3, "template": pods}})
        bound = sorted(fleet.wait_bound("train", 3), key=lambda pod: pod["metadata"]["name"])

        def end(pod, phase, code):
            cluster.patch(f"/api/v1/namespaces/{fleet.namespace}/pods/{pod['metadata']['name']}/status", {
                "status": {"phase": phase, "containerStatuses": [
                    {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
                     "state": {"terminated": {"exitCode": code}}}]}})
        job = f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs/train"
        end(bound[0], "Succeeded", 0)
        end(bound[2], "Succeeded", 0)
        # The failure ends the gang, and with it a pod that has not been counted yet: it comes after both.
        eventually("two have completed", lambda: cluster.get(job)["status"].get("completedIndexes") == "0,2")
        end(bound[1], "Failed", 3)

        def runs():
            alive = [pod for pod in fleet.bound("train") if pod["status"]["phase"] == "Running"]
            return [pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in alive] == ["1"]
        eventually(lambda: f"index 1 runs again: {fleet.states()}", runs, 90)
        again = next(pod for pod in fleet.bound("train") if pod["status"]["phase"] == "Running")
        cluster.patch(f"/api/v1/namespaces/{fleet.namespace}/pods/{again['metadata']['name']}/status", {
            "status": {"phase": "Succeeded"}})
        eventually(lambda: str(fleet.berth("jobs", "--all", code=None)), lambda: fleet.outcomes("train") == ["succeeded"])


def a_suspended_Job_is_admitted_by_lifting_suspend_and_sent_away_by_setting_it(cluster, kubeconfig):
    """Kubernetes' own controller makes and deletes the pods. The stop costs nothing of the backoffLimit, which is 0."""
    config = {"queues": {"red": {"guaranteed": {"gpus": 8}}, "blue": {"guaranteed": {"gpus": 0}}}}
    with Fleet(cluster, kubeconfig, config=config, queues="red, blue") as fleet:
        fleet.add_nodes(1)
        path = f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs"

        def make(name, queue):
            cluster.make(path, {"metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}}, "spec": {
                "suspend": True, "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0,
                "template": template(fleet, 4)}})

        def is_suspended(name):
            return cluster.get(f"{path}/{name}")["spec"]["suspend"]
        make("lent", "blue")
        fleet.wait_bound("lent", 2)
        assert not is_suspended("lent")
        fleet.server.kill()
        fleet.start()
        make("owed", "red")  # its queue takes back what it has lent
        fleet.wait_bound("owed", 2, 90)
        assert is_suspended("lent") and not is_suspended("owed") and not fleet.bound("lent"), fleet.states()
        assert not cluster.get(f"{path}/lent")["status"].get("failed"), cluster.get(f"{path}/lent")["status"]
        eventually("it says why it waits", lambda: [text for text in cluster.events_of(fleet.namespace, "lent") if "GPU" in text])
        fleet.check_room()
        cluster.kubectl("delete", "job", "owed", "-n", fleet.namespace)
        fleet.wait_bound("lent", 2, 90)
        job = next(one for one in fleet.server.all("/v1/jobs") if one["name"] == "lent")
        fleet.berth("cancel", str(job["id"]))
        eventually(lambda: f"it is sent away: {fleet.states()}", lambda: is_suspended("lent") and not fleet.pods("lent"))
        eventually("the Job says who cancelled it",
                   lambda: cluster.get(f"{path}/lent")["metadata"].get("annotations", {}).get("berth.dev/cancelled") == f"job {job['id']}")


def a_priority_class_that_is_not_the_namespace_s_is_refused_by_name(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        space = fleet.namespace + "-plain"
        fleet.add_namespace(space, "red", "dev")
        fleet.make(fleet.pod("high", 1, {"berth.dev/priority-class": "production"}, namespace=space),
                   fleet.pod("low", 1, {"berth.dev/priority-class": "dev"}, namespace=space))
        fleet.wait_event("high", "priority class 'production' is not one that namespace .* may use: dev", namespace=space)
        fleet.wait_bound("low", 1, namespace=space)
        assert not fleet.bound("high", space)


if __name__ == "__main__":
    sys.exit(main([the_jobs_of_a_JobSet_are_one_gang_in_the_queue_of_its_label, *map(gang_of, GANGS),
                   a_kind_that_is_installed_later_is_noticed, without_the_right_to_read_a_kind_berth_runs_and_says_so,
                   completed_pods_of_a_Job_are_not_run_again,
                   a_suspended_Job_is_admitted_by_lifting_suspend_and_sent_away_by_setting_it,
                   a_priority_class_that_is_not_the_namespace_s_is_refused_by_name]))

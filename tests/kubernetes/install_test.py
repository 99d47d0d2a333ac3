#!/usr/bin/env python3
"""deploy/kubernetes on a real API server: the manifests are taken, the rights are those that berth needs and no more."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from cluster import Refused, eventually
from fleet import DEPLOY, Fleet, main, shorter_waits
from server import berth_binary

FORBIDDEN = [("get", "secrets"), ("list", "secrets"), ("create", "pods"), ("create", "pods/exec"),
             ("patch", "nodes"), ("delete", "nodes"), ("update", "pods"), ("patch", "pods"), ("get", "configmaps"),
             ("escalate", "clusterroles"), ("impersonate", "users"), ("create", "serviceaccounts/token"),
             ("update", "leases.coordination.k8s.io"), ("delete", "jobs.batch"), ("create", "rolebindings.rbac.authorization.k8s.io")]


def the_manifests_are_taken_and_removed_and_jobs_outlive_them(cluster, kubeconfig):
    """All files together in a cluster that has none of them, and again. The pod passes the strictest pod security standard,
    which its namespace enforces. What runs in the namespace of jobs is there when all else is deleted. This case is the last: the
    account is another one now."""
    cluster.kubectl("delete", "-k", DEPLOY, "--ignore-not-found")
    eventually("the account is gone", lambda: cluster.get("/api/v1/namespaces/berth/serviceaccounts/berth") is None)
    for file in ("namespace.yaml", "job-namespaces.yaml"):
        cluster.kubectl("apply", "-f", os.path.join(DEPLOY, file))
    made = cluster.kubectl("apply", "-k", DEPLOY).splitlines()
    assert len(made) >= 10 and all(line.endswith(" created") for line in made), made
    again = cluster.kubectl("apply", "-k", DEPLOY).splitlines()
    assert [line.rsplit(" ", 1)[0] for line in again] == [line.rsplit(" ", 1)[0] for line in made], again
    namespace = cluster.get("/api/v1/namespaces/berth")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    pod = eventually(lambda: "the pod of the StatefulSet is made: " + str(cluster.events_of("berth", "berth")),
                     lambda: cluster.get("/api/v1/namespaces/berth/pods/berth-0"))
    assert pod["spec"]["serviceAccountName"] == "berth" and pod["spec"]["containers"][0]["readinessProbe"], pod["spec"]
    root = {"metadata": {"name": "root"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    try:
        cluster.make("/api/v1/namespaces/berth/pods", root)
        raise AssertionError("the namespace takes a pod that may be root")
    except Refused as refused:
        assert refused.status == 403 and "restricted" in str(refused), refused
    job = {"metadata": {"name": "of-a-user"}, "spec": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "main", "image": "x", "securityContext": {
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}}
    uid = cluster.make("/api/v1/namespaces/berth-jobs/pods", job)["metadata"]["uid"]
    cluster.kubectl("delete", "-k", DEPLOY)
    eventually("berth is gone", lambda: cluster.get("/api/v1/namespaces/berth/pods/berth-0") is None)
    left = cluster.kubectl("get", "clusterroles,clusterrolebindings,flowschemas,validatingadmissionpolicies,crds", "-o", "name").split()
    assert not [one for one in left if one.split("/")[1].startswith("berth") or one.endswith("berth.dev")], left
    pod = cluster.get("/api/v1/namespaces/berth-jobs/pods/of-a-user")
    assert pod and pod["metadata"]["uid"] == uid and "deletionTimestamp" not in pod["metadata"], pod
    assert cluster.get("/api/v1/namespaces/berth")["status"]["phase"] == "Active", "the volume with the log is in it"


def the_arguments_of_the_manifest_are_taken(cluster, kubeconfig):
    """The command line of the StatefulSet starts a server, and its probe answers; only paths and port are others."""
    listed = json.loads(cluster.kubectl("apply", "-f", os.path.join(DEPLOY, "berth.yaml"), "--dry-run=client", "-o", "json"))
    container = next(one for one in listed["items"] if one["kind"] == "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    config = json.loads(cluster.kubectl("apply", "-f", os.path.join(DEPLOY, "config.yaml"), "--dry-run=client", "-o", "json"))
    with Fleet(cluster, kubeconfig, start=False) as fleet:
        with open(fleet.config, "w") as file:
            file.write(config["data"]["cluster.yaml"])
        given = [word for word in container["args"] if word.startswith("--") and word not in ("--data", "--config", "--port")]
        assert container["args"][0] == "serve" and given == ["--backend", "--job-namespace"], container["args"]
        fleet.server.flags = ["--backend", "kubernetes", "--job-namespace", "berth-jobs", "--kubeconfig", kubeconfig]
        fleet.start()
        assert container["startupProbe"]["exec"]["command"] == ["berth", "status"]
        fleet.berth("status")
        fleet.server.kill()
        ran = subprocess.run([berth_binary(), "status"], capture_output=True, check=False, env={
            **os.environ, "BERTH_SERVER": f"http://127.0.0.1:{fleet.server.port}",
            "BERTH_TOKEN_FILE": os.path.join(fleet.server.data, "token")})
        assert ran.returncode != 0, "the probe fails when the server is dead"


def the_account_may_do_what_berth_does_and_no_more(cluster, kubeconfig):
    def may(verb, what):
        resource, _, part = what.partition("/")
        return cluster.kubectl("auth", "can-i", verb, resource, "-n", "default", *(["--subresource=" + part] if part else []),
                               kubeconfig=kubeconfig, code=None).splitlines()[0]
    for verb, what in FORBIDDEN:
        assert may(verb, what) == "no", (verb, what)
    for verb, what in [("create", "pods/binding"), ("delete", "pods"), ("patch", "pods/status")]:
        assert may(verb, what) == "yes", (verb, what)


def each_right_is_needed(cluster, kubeconfig):
    """Without any one rule berth does not start: it names what is missing, asks again for a while, and ends."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    with Fleet(cluster, kubeconfig, start=False) as fleet, ThreadPoolExecutor() as pool:
        for roles in (f"{rbac}/clusterroles/berth", f"{rbac}/namespaces/berth-jobs/roles/berth-jobs"):
            whole = cluster.get(roles)["rules"]
            try:
                for number, rule in enumerate(whole):
                    cluster.patch(roles, {"rules": whole[:number] + whole[number + 1:]})
                    server = fleet.new_server(f"without-{number}", shorter_waits())
                    starting = pool.submit(server.start, patience_s=120)
                    resource = rule["resources"][0].split("/")[0]
                    eventually(lambda: f"it waits for {rule}\n" + server.tail(),
                               lambda: os.path.exists(server.log) and resource in server.tail() and "asks again" in server.tail())
                    if number > 0:  # its end is waited for once for each role
                        server.kill()
                    assert not starting.result(), f"it starts without {rule}"
                    assert number > 0 or "Grant these rights" in server.tail(), server.tail()
            finally:
                cluster.patch(roles, {"rules": whole})
        fleet.start()


def without_the_right_to_queue_objects_it_runs(cluster, kubeconfig):
    """It says so at the start, and shows no queues; with the definition there, its requests for them are refused."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-queues"
    whole = cluster.get(role)["rules"]
    cluster.kubectl("apply", "-f", os.path.join(DEPLOY, "crd.yaml"))
    cluster.kubectl("wait", "--for=condition=Established", "crd/queues.berth.dev", "--timeout=30s")
    queues = "/apis/berth.dev/v1alpha1/queues"
    eventually("queues are served", lambda: cluster.raw("GET", queues)[0] == 200)  # 404 first, then 429
    try:
        cluster.patch(role, {"rules": []})
        with Fleet(cluster, kubeconfig) as fleet:
            fleet.add_nodes(1)
            fleet.make(*fleet.gang("g", 2))
            fleet.wait_bound("g", 2)
            said = "does not let this user: list queues.berth.dev, create queues.berth.dev, patch queues.berth.dev, delete queues.berth.dev"
            eventually(fleet.server.tail, lambda: said in fleet.server.tail())
            eventually(lambda: fleet.berth("status"), lambda: "kubectl get queues" in fleet.berth("status"), 30)
            eventually(fleet.server.tail, lambda: "queues are not shown as objects: " in fleet.server.tail(), 30)
            assert not cluster.items(queues)
    finally:
        cluster.patch(role, {"rules": whole})
        cluster.kubectl("delete", "-f", os.path.join(DEPLOY, "crd.yaml"))


def its_requests_have_a_priority_level(cluster, kubeconfig):
    cluster.kubectl("apply", "-f", os.path.join(DEPLOY, "flow-control.yaml"))
    schema = cluster.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/berth")["metadata"]["uid"]

    def matched():
        said = cluster.kubectl("get", "--raw", "/api/v1/nodes", "-v=8", kubeconfig=kubeconfig, code=None)
        ran = subprocess.run([os.path.join(cluster.bin, "kubectl"), "--kubeconfig", kubeconfig, "get", "nodes", "-v=9"],
                             capture_output=True, text=True, check=False)
        return schema in said + ran.stdout + ran.stderr
    eventually("the FlowSchema berth takes its requests", matched, 30)
    cluster.kubectl("delete", "-f", os.path.join(DEPLOY, "flow-control.yaml"))


class Closed:
    """The policy of policy.yaml is in force, and the namespace of the fleet has its label; neither is behind it."""

    def __init__(self, fleet):
        self.fleet, self.cluster = fleet, fleet.cluster
        self.policy = os.path.join(DEPLOY, "policy.yaml")
        self.numbers = iter(range(1000))

    def label(self, name_space, value="yes"):
        self.cluster.patch(f"/api/v1/namespaces/{name_space}", {"metadata": {"labels": {"berth.dev/only": value}}})

    def __enter__(self):
        self.cluster.kubectl("apply", "-f", self.policy)
        self.label(self.fleet.namespace)
        eventually("the policy is in force", lambda: "names berth" in self.refusal_of_pod(schedulerName="other"), 30)
        return self

    def __exit__(self, kind, value, trace):
        self.cluster.kubectl("delete", "-f", self.policy)

    def refusal(self, verb, *what):
        """Why the API server refuses it; empty: it does not."""
        try:
            verb(*what)
        except Refused as refused:
            assert refused.status in (403, 422), refused
            return str(refused)
        return ""

    def refusal_of_pod(self, gpus=1, annotations=None, **spec):
        pod = self.fleet.pod(f"tried-{next(self.numbers)}", gpus, annotations=annotations, **spec)
        return self.refusal(self.cluster.make, f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)


def tenants_do_not_write_past_the_quotas(cluster, kubeconfig):
    """policy.yaml refuses what would use GPUs outside the quotas, where its label is, and stands in the way of nothing else."""
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        other = fleet.namespace + "-open"
        fleet.add_namespace(other)
        with Closed(fleet) as closed:
            path = f"/api/v1/namespaces/{fleet.namespace}/pods"
            assert "spec.nodeName" in closed.refusal_of_pod(nodeName=node)
            assert "berth's own" in closed.refusal_of_pod(annotations={"berth.dev/task": "1/1/0/1"})
            first = [{"name": "first", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
            assert "names berth" in closed.refusal_of_pod(0, schedulerName="other", initContainers=first)
            fleet.make(fleet.pod("good", 1, annotations={"note": "mine"}))
            fleet.wait_bound("good", 1)  # a Binding writes the annotations
            for change in ({"berth.dev/task": None}, {"berth.dev/log": "x"}):
                assert "berth's own" in closed.refusal(cluster.patch, path + "/good", {"metadata": {"annotations": change}})
            assert not closed.refusal(cluster.patch, path + "/good", {"metadata": {"annotations": {"note": "other"}}})
            assert not closed.refusal_of_pod(0, schedulerName="default-scheduler")
            assert not closed.refusal_of_pod(namespace=other, schedulerName="other"), "the label is what closes a namespace"
            assert not closed.refusal_of_pod(namespace=other, schedulerName="other", nodeName=node)
            closed.label(other)
            # The API server judges by its own watch of namespaces, which hears of the label a moment later.
            eventually("the label is in force", lambda: "names berth" in closed.refusal_of_pod(namespace=other, schedulerName="other"))


def the_policy_lets_a_cluster_live(cluster, kubeconfig):
    """A Job with GPUs of another scheduler that runs when its namespace is closed is done, and goes. Pods that are put on a node
    without GPUs, as `kubectl debug node/...` and DaemonSets have them, and what the GPU operator makes in its own namespace, are
    taken."""
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        fleet.add_namespace("gpu-operator")
        pod = fleet.pod("x", 1, schedulerName="another-scheduler")
        jobs = f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs"
        cluster.make(jobs, {"metadata": {"name": "train"}, "spec": {"parallelism": 2, "completions": 2, "template": {
            "metadata": {"annotations": {"berth.test/runs-for": "1h"}}, "spec": pod["spec"]}}})
        pods = eventually("its pods are made", lambda: len(fleet.pods("train")) == 2 and fleet.pods("train"))
        for one in pods:  # as its scheduler does
            cluster.make(f"/api/v1/namespaces/{fleet.namespace}/pods/{one['metadata']['name']}/binding", {
                "metadata": {"name": one["metadata"]["name"]}, "target": {"kind": "Node", "name": node}})
        fleet.wait_bound("train", 2)
        with Closed(fleet) as closed:
            for one in pods:
                cluster.ask("PATCH", f"/api/v1/namespaces/{fleet.namespace}/pods/{one['metadata']['name']}/status",
                            {"status": {"phase": "Succeeded"}}, "application/merge-patch+json")
            done = eventually(lambda: cluster.get(jobs + "/train")["status"], lambda: [one for one in cluster.get(jobs + "/train")["status"].get("conditions", [])
                                       if one["type"] == "Complete"])
            assert done[0]["status"] == "True", done
            cluster.ask("DELETE", jobs + "/train?propagationPolicy=Background")
            eventually(lambda: f"its pods are gone, but {fleet.states()}",
                       lambda: not [one for one in cluster.pods(fleet.namespace) if one["metadata"]["name"].startswith("train")])
            debug = {"nodeName": node, "hostPID": True, "hostNetwork": True, "restartPolicy": "Never",
                     "schedulerName": "default-scheduler", "tolerations": [{"operator": "Exists"}]}
            assert not closed.refusal_of_pod(0, **debug)
            validator = {"nodeName": node, "schedulerName": "default-scheduler"}  # its runWorkload: a GPU on a node that it names
            closed.label("gpu-operator")  # nor where it is closed
            cluster.kubectl("create", "serviceaccount", "validator", "-n", "gpu-operator")
            cluster.kubectl("create", "rolebinding", "validator", "-n", "gpu-operator", "--clusterrole=edit",
                            "--serviceaccount=gpu-operator:validator")
            made = fleet.pod("validator", 1, namespace="gpu-operator", **validator)
            cluster.kubectl("create", "-f", "-", text=json.dumps(made),
                            kubeconfig=cluster.account_kubeconfig("gpu-operator", "validator"))
            daemons = f"/apis/apps/v1/namespaces/{fleet.namespace}/daemonsets"
            spec = fleet.pod("x", 0)["spec"]
            del spec["schedulerName"], spec["restartPolicy"]
            cluster.make(daemons, {"metadata": {"name": "logs"}, "spec": {
                "selector": {"matchLabels": {"app": "logs"}}, "template": {"metadata": {"labels": {"app": "logs"}}, "spec": spec}}})
            eventually(lambda: f"the pod of a DaemonSet is made: {cluster.events_of(fleet.namespace, 'logs')}", lambda: fleet.pods("logs"))
            cluster.ask("DELETE", daemons + "/logs?propagationPolicy=Background")
            assert "names berth" in closed.refusal_of_pod(schedulerName="another-scheduler")


def a_daemonset_with_gpus_is_let_in_by_a_label_of_its_namespace(cluster, kubeconfig):
    """Its pods name no berth and choose their node by affinity. Without the label they are refused, and forged owners always are."""
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        with Closed(fleet) as closed:
            daemons = f"/apis/apps/v1/namespaces/{fleet.namespace}/daemonsets"
            spec = fleet.pod("x", 1)["spec"]
            del spec["schedulerName"], spec["restartPolicy"]
            watcher = cluster.make(daemons, {"metadata": {"name": "gpu-watch"}, "spec": {
                "selector": {"matchLabels": {"app": "gpu-watch"}},
                "template": {"metadata": {"labels": {"app": "gpu-watch"}}, "spec": spec}}})
            eventually("its pod is refused, and the way in is told",
                       lambda: "berth.dev/daemonsets" in str(cluster.events_of(fleet.namespace, "gpu-watch")))
            assert not fleet.pods("gpu-watch")
            cluster.patch(f"/api/v1/namespaces/{fleet.namespace}", {"metadata": {"labels": {"berth.dev/daemonsets": "yes"}}})
            forged = fleet.pod("forged", 1, schedulerName="default-scheduler")
            forged["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gpu-watch",
                                                      "uid": watcher["metadata"]["uid"], "controller": True}]
            path = f"/api/v1/namespaces/{fleet.namespace}/pods"
            assert "names berth" in closed.refusal(cluster.make, path, forged)
            # The controller tries again ever later; a change of the DaemonSet makes it try at once.
            cluster.patch(daemons + "/gpu-watch", {"metadata": {"annotations": {"tried": "again"}}})
            eventually(lambda: f"the pod is made: {cluster.events_of(fleet.namespace, 'gpu-watch')}", lambda: fleet.pods("gpu-watch"))
            cluster.ask("DELETE", daemons + "/gpu-watch?propagationPolicy=Background")


def a_copy_of_a_bound_pod_waits_as_a_new_pod_does(cluster, kubeconfig):
    """What `kubectl debug --copy-to` makes of a pod with GPUs is in the quota; on the node of the pod it would be in none."""
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        with Closed(fleet):
            fleet.make(fleet.pod("train", 1))
            fleet.wait_bound("train", 1)
            copy = ("debug", "train", "-n", fleet.namespace, "--image=x", "--attach=false")
            cluster.kubectl(*copy, "--copy-to=copied")
            fleet.wait_bound("copied", 1)
            for flag, said in (("--same-node", "without --same-node"), ("--keep-annotations", "berth's own")):
                refused = cluster.kubectl(*copy, "--copy-to=refused", flag, code=1)
                assert said in refused, refused


def a_default_priority_class_is_not_one_that_a_pod_names(cluster, kubeconfig):
    """The API server writes the class with globalDefault into each pod; the namespace may use none by name."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.make(classes, {"metadata": {"name": "default-priority"}, "value": 100, "globalDefault": True})
    try:
        with Fleet(cluster, kubeconfig) as fleet:
            fleet.add_nodes(1)
            fleet.add_namespace("blue-team", "blue", classes="")
            probe = fleet.pod("probe", 1, namespace="blue-team")
            eventually("the API server writes the class into pods",
                       lambda: cluster.make("/api/v1/namespaces/blue-team/pods?dryRun=All", probe)["spec"].get("priorityClassName"))
            fleet.make(fleet.pod("a", 1, namespace="blue-team"))
            pod, = fleet.wait_bound("a", 1, namespace="blue-team")
            assert pod["spec"]["priorityClassName"] == "default-priority", pod["spec"]
            cluster.delete("/api/v1/namespaces/blue-team/pods/a", 0)
    finally:
        cluster.delete(classes + "/default-priority")


def the_image_has_all_that_berth_needs(cluster, kubeconfig):
    """No registry can be reached here, so the image is not built. But what its Containerfile puts into it is put into a folder,
    and berth runs there with that folder as its root, as the user of the image, and schedules."""
    as_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        subprocess.run([os.path.join(DEPLOY, "image-root"), berth_binary(), root], check=True)
        entries = [os.path.join(folder, name)[len(root):] for folder, _, names in os.walk(root) for name in names]
        assert "/etc/ssl/certs/ca-certificates.crt" in entries and not [one for one in entries if one.endswith(("/sh", "/apt"))], entries
        enter = ["chroot", "--userspec=65532:65532", root] if as_root else ["unshare", "--user", "--map-root-user", "chroot", root]
        with Fleet(cluster, kubeconfig, start=False) as fleet:
            for path in (fleet.config, kubeconfig, os.path.join(cluster.directory, "pki", "ca.crt")):
                os.makedirs(root + os.path.dirname(path), exist_ok=True)
                shutil.copy(path, root + path)
                os.chmod(root + path, 0o644)
            fleet.server.program = [*enter, "/usr/local/bin/berth"]
            # Its files are below the root of the image; the test looks at them from outside.
            fleet.server.directory = root + "/var/lib/berth"
            fleet.server.data, fleet.server.log = root + "/var/lib/berth/data", root + "/var/lib/berth/server.log"
            fleet.server.flags = ["--backend", "kubernetes", "--kubeconfig", kubeconfig]
            command = [*fleet.server.program, "--version"]
            version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            assert version.startswith("berth"), version
            start_inside(fleet, root)
            fleet.add_nodes(1)
            fleet.make(*fleet.gang("g", 2))
            fleet.wait_bound("g", 2)


def start_inside(fleet, root):
    """Starts the server with paths as the program sees them."""
    server, data, config = fleet.server, fleet.server.data, fleet.server.config
    ready = "/var/lib/berth/ready"
    with open(server.log, "w") as log:
        server.process = subprocess.Popen(
            [*server.program, "serve", "--data", data[len(root):], "--config", config, "--ready-file", ready, "--port", "0",
             *server.flags], stdout=log, stderr=log, start_new_session=True)
    eventually("it is ready", lambda: os.path.exists(root + ready) or server.process.poll() is not None)
    assert server.process.poll() is None, server.tail()
    with open(root + ready) as file:
        server.port = int(file.read().strip().rsplit(":", 1)[1])
    with open(os.path.join(data, "token")) as file:
        server.token = file.read().strip()


if __name__ == "__main__":
    sys.exit(main([the_arguments_of_the_manifest_are_taken,
                   the_account_may_do_what_berth_does_and_no_more, each_right_is_needed,
                   without_the_right_to_queue_objects_it_runs, its_requests_have_a_priority_level,
                   tenants_do_not_write_past_the_quotas, the_policy_lets_a_cluster_live,
                   a_daemonset_with_gpus_is_let_in_by_a_label_of_its_namespace, a_copy_of_a_bound_pod_waits_as_a_new_pod_does,
                   a_default_priority_class_is_not_one_that_a_pod_names, the_image_has_all_that_berth_needs,
                   the_manifests_are_taken_and_removed_and_jobs_outlive_them]))

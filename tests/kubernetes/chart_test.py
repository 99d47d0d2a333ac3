#!/usr/bin/env python3
"""The chart in deploy/helm with helm itself and a real API server: the plain manifests are what it makes, its objects are
taken, and berth schedules with the account that they make and no more.

helm is built by tests/kubernetes/helm/build. The ServiceMonitor is of a minimal CRD, which stands for that of its operator."""
import filecmp
import json
import os
import subprocess
import sys
import tempfile

from cluster import HERE, ROOT, Refused, node_of, wait_until
from fleet import DEPLOY, Fleet, main

CHART = os.path.join(ROOT, "deploy", "helm", "berth")
# Every option that is not on by default, in another namespace than the default one.
OPTIONS = {
    "image": {"repository": "registry.example.com/berth", "tag": "1"}, "imagePullSecrets": [{"name": "pull"}],
    "config": {"cluster": "fleet", "queues": {"red": {}, "blue": {"max": {"gpus": 4}}}},
    "prices": {"currency": "EUR"}, "topologyLabels": ["topology.kubernetes.io/zone", "topology.kubernetes.io/rack"],
    "jobs": {"namespace": "gpu-jobs", "queues": {"blue": "blue-jobs"}}, "extraArgs": ["--keep-finished", "7d"],
    "tls": {"secretName": "berth-tls"}, "networkPolicy": {"from": [{"namespaceSelector": {}}]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "admissionPolicy": {"namespaceSelector": {"matchLabels": {"team": "closed"}}},
    "volume": {"size": "5Gi", "storageClassName": "fast"}, "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}]}
HELM = ""


def helm(*words, code=0, kubeconfig=None):
    """What helm printed; it must end with `code`."""
    ran = subprocess.run([HELM, *words, *(["--kubeconfig", kubeconfig] if kubeconfig else [])], capture_output=True, text=True,
                         check=False, timeout=120)
    assert ran.returncode == code, (words, ran.stdout, ran.stderr)
    return ran.stdout if code == 0 else ran.stdout + ran.stderr


def values_file(cluster, values):
    path = cluster.path(f"values-{len(os.listdir(cluster.directory))}.yaml")
    with open(path, "w") as file:
        json.dump(values, file)  # JSON is YAML
    return path


def the_plain_manifests_are_those_of_the_chart(cluster, kubeconfig):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(ROOT, "deploy", "helm", "render"), folder], check=True, env={**os.environ, "HELM": HELM})
        made = sorted(os.listdir(folder))
        with open(os.path.join(DEPLOY, "kustomization.yaml")) as file:
            listed = [line.strip()[2:] for line in file if line.startswith("  - ")]
        assert sorted([*listed, "job-namespaces.yaml"]) == sorted(made), (listed, made)
        differ = [name for name in made if not filecmp.cmp(os.path.join(folder, name), os.path.join(DEPLOY, name), shallow=False)]
        assert not differ, f"run deploy/helm/render: {differ} in deploy/kubernetes differ from what the chart makes"


def what_cannot_be_is_said(cluster, kubeconfig):
    helm("lint", "--strict", CHART, "--values", values_file(cluster, OPTIONS))
    said = helm("template", "berth", CHART, "--set", "serviceMonitor.enabled=true", code=1)
    assert "serviceMonitor.enabled needs tls.secretName" in said, said
    for wrong, word in (("imagee.tag=1", "'imagee' not allowed"), ("networkPolicy.egressPorts=443", "/networkPolicy/egressPorts"),
                        ("jobs.namespace=Not_One", "Not_One"), ("podDisruptionBudget.maxUnavailable=x", "maxUnavailable")):
        said = helm("template", "berth", CHART, "--set", wrong, code=1)
        assert word in said, (wrong, said)


def apply_strictly(cluster, text):
    """Server-side dry run with strict validation, then for real, and a second time, which makes nothing."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-", text=text)
    made = cluster.kubectl("apply", "--validate=strict", "-f", "-", text=text).splitlines()
    again = cluster.kubectl("apply", "--validate=strict", "-f", "-", text=text).splitlines()
    assert made and all(line.endswith((" unchanged", " configured")) for line in again), again
    return made


def berth_schedules_with_the_account_of_the_chart(cluster, kubeconfig):
    """The default values, as `helm template` makes them."""
    made = apply_strictly(cluster, helm("template", "berth", CHART, "--namespace", "berth"))
    kinds = {line.split("/")[0] for line in made}
    for kind in ("networkpolicy.networking.k8s.io", "poddisruptionbudget.policy", "statefulset.apps",
                 "flowschema.flowcontrol.apiserver.k8s.io", "validatingadmissionpolicy.admissionregistration.k8s.io"):
        assert kind in kinds, kinds
    with Fleet(cluster, cluster.account_kubeconfig("berth", "berth", "of-the-chart")) as fleet:
        fleet.add_nodes(2, gpus=4)
        fleet.make(*fleet.gang("g", 8))
        fleet.wait_bound("g", 8)
        assert "does not let this user" not in fleet.server.tail(), fleet.server.tail()
        wait_until(lambda: cluster.get("/apis/berth.dev/v1alpha1/queues/red"), "its queues are objects")
        fleet.check_room()


def all_options_are_taken(cluster, kubeconfig):
    """In another namespace, with TLS, a ServiceMonitor, jobs in two namespaces. The pod is made, and keeps the standard."""
    cluster.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
                 "names": {"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    cluster.kubectl("wait", "--for=condition=Established", "crd/servicemonitors.monitoring.coreos.com", "--timeout=30s")
    for name in ("gpu-system", "gpu-jobs", "blue-jobs"):
        cluster.make("/api/v1/namespaces", {"metadata": {"name": name, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted"}}})
    options = {**OPTIONS, "jobs": {**OPTIONS["jobs"], "createNamespaces": False}}
    apply_strictly(cluster, helm("template", "berth", CHART, "--namespace", "gpu-system", "--values", values_file(cluster, options)))
    wait_until(lambda: cluster.get("/api/v1/namespaces/gpu-system/serviceaccounts/berth"), "its account")
    pod = wait_until(lambda: cluster.get("/api/v1/namespaces/gpu-system/pods/berth-0"), lambda: "the pod is made: " +
                     str(cluster.events_of("gpu-system", "berth")))
    container = pod["spec"]["containers"][0]
    assert container["image"] == "registry.example.com/berth:1" and container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    secret = next(one for one in pod["spec"]["volumes"] if one["name"] == "tls")["secret"]
    assert secret == {"secretName": "berth-tls", "defaultMode": 0o440}, secret  # the server refuses a key that others may read
    monitor = cluster.get("/apis/monitoring.coreos.com/v1/namespaces/gpu-system/servicemonitors/berth")
    service = cluster.get("/api/v1/namespaces/gpu-system/services/berth")
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    assert selected <= service["metadata"]["labels"].items() and service["spec"]["ports"][0]["name"] == "https", service
    assert monitor["metadata"]["labels"]["release"] == "prometheus", monitor
    flags = [word for word in container["args"][1:] if not word.startswith(("/etc", "/var"))]
    for path_flag in ("--data", "--config", "--tls-cert", "--tls-key"):
        flags.remove(path_flag)
    for word, value in (("--listen", "0.0.0.0"), ("--port", "6380")):
        assert flags[flags.index(word) + 1] == value, flags
        del flags[flags.index(word):flags.index(word) + 2]
    account = cluster.account_kubeconfig("gpu-system", "berth")
    with Fleet(cluster, account, start=False) as fleet:
        fleet.server.flags = [*flags, "--kubeconfig", account]  # those of the manifest, but for its files and its address
        fleet.start()
        fleet.add_nodes(1, labels={"topology.kubernetes.io/rack": "r1"})
        fleet.make(*fleet.gang("g", 2))
        fleet.wait_bound("g", 2)
        fleet.berth("submit", "--queue", "blue", "--image", "example.com/x:1", "--gpus", "2", "--", "train")
        fleet.wait_bound("berth-", 1, namespace="blue-jobs")
        pod = fleet.bound("berth-", "blue-jobs")[0]
        cluster.delete(f"/api/v1/namespaces/blue-jobs/pods/{pod['metadata']['name']}", 0)


def gpus_are_kept_for_berth_where_the_selector_says(cluster, kubeconfig):
    """After all_options_are_taken: the policy holds in namespaces with a label, and in no other."""
    with Fleet(cluster, kubeconfig, start=False) as fleet:
        fleet.add_nodes(1)
        fleet.add_namespace(fleet.namespace + "-only")
        cluster.patch(f"/api/v1/namespaces/{fleet.namespace}-only", {"metadata": {"labels": {"team": "closed"}}})
        numbers = iter(range(1000))

        def refusal(space, **change):
            pod = fleet.pod(f"p{next(numbers)}", 1, namespace=space, **{"schedulerName": "other", **change})
            try:
                fleet.make(pod)
            except Refused as refused:
                assert refused.status == 422, refused
                return str(refused)
            return ""
        # A policy is in force a moment after it was made.
        wait_until(lambda: "names berth" in refusal(fleet.namespace + "-only"), "a pod with GPUs of another scheduler is refused", 30)
        gpu = {"requests": {}, "limits": {"nvidia.com/gpu": "1"}}
        first = [{"name": "first", "image": "x", "resources": gpu}]
        without = [{"name": "main", "image": "x"}]
        assert "names berth" in refusal(fleet.namespace + "-only", containers=without, initContainers=first)
        assert refusal(fleet.namespace + "-only", containers=without) == ""
        assert refusal(fleet.namespace + "-only", schedulerName="berth") == ""
        assert refusal(fleet.namespace) == ""


def helm_installs_upgrades_and_removes(cluster, kubeconfig):
    # What kubectl has made is not helm's.
    everything = helm("template", "berth", CHART, "--namespace", "gpu-system", "--values", values_file(cluster, OPTIONS))
    cluster.kubectl("delete", "--ignore-not-found", "--wait=true", "-f", "-", text=everything)
    cluster.kubectl("delete", "--ignore-not-found", "--wait=true", "-f", "-",
                    text=helm("template", "berth", CHART, "--namespace", "berth"))
    told = helm("install", "berth", CHART, "--namespace", "berth", kubeconfig=cluster.admin)
    assert "kubectl annotate namespace TEAM berth.dev/queues=QUEUE" in told, told
    pod = wait_until(lambda: cluster.get("/api/v1/namespaces/berth/pods/berth-0"), "the pod is made")
    assert pod["spec"]["serviceAccountName"] == "berth", pod["spec"]
    helm("upgrade", "berth", CHART, "--namespace", "berth", "--set-json", 'config={"cluster": "x", "queues": {"team-c": {}}}',
         kubeconfig=cluster.admin)
    config = cluster.get("/api/v1/namespaces/berth/configmaps/berth")["data"]["cluster.yaml"]
    assert "team-c" in config and "team-a" not in config, config
    with Fleet(cluster, cluster.account_kubeconfig("berth", "berth", "of-helm"), queues="team-c", start=False) as fleet:
        with open(fleet.config, "w") as file:
            file.write(config)
        fleet.start()
        node, = fleet.add_nodes(1)
        fleet.make(fleet.pod("one", 1))
        assert node_of(fleet.wait_bound("one", 1)[0]) == node
    uid = cluster.get("/api/v1/namespaces/berth-jobs")["metadata"]["uid"]
    helm("uninstall", "berth", "--namespace", "berth", "--wait", kubeconfig=cluster.admin)
    left = cluster.kubectl("get", "clusterroles,clusterrolebindings,flowschemas,validatingadmissionpolicies", "-o", "name").split()
    assert not [one for one in left if one.split("/")[1].startswith("berth")], left
    kept = cluster.get("/api/v1/namespaces/berth-jobs")
    assert kept["metadata"]["uid"] == uid and kept["status"]["phase"] == "Active", "jobs run in it"
    helm("install", "berth", CHART, "--namespace", "berth", kubeconfig=cluster.admin)  # and it takes that namespace up again
    helm("uninstall", "berth", "--namespace", "berth", "--wait", kubeconfig=cluster.admin)


CASES = [the_plain_manifests_are_those_of_the_chart, what_cannot_be_is_said, berth_schedules_with_the_account_of_the_chart,
         all_options_are_taken, gpus_are_kept_for_berth_where_the_selector_says, helm_installs_upgrades_and_removes]

if __name__ == "__main__":
    found = subprocess.run([os.path.join(HERE, "helm", "build"), "--where"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print("SKIPPED: helm is not built; `tests/kubernetes/helm/build` or `./test --kubernetes` does it")
        sys.exit(77)
    HELM = found.stdout.strip()
    sys.exit(main(CASES))

#!/usr/bin/env python3
"""Pods with PersistentVolumeClaims on a real API server, whose own controllers bind claims to volumes. The provisioner is a
stand-in: it makes a volume for the node that berth has written into the claim, as a provisioner of storage would."""
import re
import sys

from cluster import eventually, node_of
from fleet import Fleet, main, shorter_waits

SELECTED = "volume.kubernetes.io/selected-node"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"


class Volumes(Fleet):
    """A fleet with two StorageClasses of its own, and the stand-in for their provisioner."""

    def __init__(self, cluster, kubeconfig, flags=()):
        super().__init__(cluster, kubeconfig, start=False, flags=flags)
        self.made, self.classes = [], []
        self.late, self.immediate = self.add_class("late", "WaitForFirstConsumer"), self.add_class("now", "Immediate")
        self.start()

    def __exit__(self, *what):
        super().__exit__(*what)
        for name in self.made:
            self.cluster.delete(f"{VOLUMES}/{name}")
        for name in self.classes:
            self.cluster.delete(f"{CLASSES}/{name}")

    def add_class(self, name, mode, **more):
        name = f"{self.namespace}-{name}"
        self.cluster.make(CLASSES, {"metadata": {"name": name}, "provisioner": "berth.test/stand-in", "volumeBindingMode": mode, **more})
        self.classes.append(name)
        return name

    @property
    def claims_path(self):
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"

    def add_claim(self, name, storage_class, mode="ReadWriteOnce", **more):
        self.cluster.make(self.claims_path, {"metadata": {"name": name}, "spec": {
            "storageClassName": storage_class, "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, **more}})

    def claim(self, name):
        return self.cluster.get(f"{self.claims_path}/{name}")

    def selected(self, name):
        return self.claim(name)["metadata"].get("annotations", {}).get(SELECTED)

    def wait_selected(self, name):
        return eventually(f"a node is written into claim {name}", lambda: self.selected(name), 120)

    def provision(self, name, key="kubernetes.io/hostname", values=None):
        """A volume for the claim, which nodes with one of these labels have; the chosen node if none are said."""
        claim = self.claim(name)
        values = values or [self.wait_selected(name)]
        self.add_volume(f"{self.namespace}-pv{len(self.made)}", claim["spec"]["storageClassName"], claim["spec"]["accessModes"],
                        key, values, {"namespace": self.namespace, "name": name, "uid": claim["metadata"]["uid"]})
        eventually(f"claim {name} is bound", lambda: self.claim(name)["status"].get("phase") == "Bound")

    def add_volume(self, name, storage_class, modes, key, values, claim=None):
        expression = {"key": key, "operator": "In", "values": values}
        self.cluster.make(VOLUMES, {"metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": modes, "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/data"}, **({"claimRef": claim} if claim else {}),
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}})
        self.made.append(name)

    def with_claim(self, pod, claim):
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        return pod


def a_gang_with_a_claim_per_pod_starts_whole(cluster, kubeconfig):
    with Volumes(cluster, kubeconfig) as fleet:
        fleet.add_nodes(2)
        for number in range(4):
            fleet.add_claim(f"data-{number}", fleet.late)
        fleet.make(*[fleet.with_claim(pod, f"data-{number}") for number, pod in enumerate(fleet.gang("g", 4, gpus=4))])
        chosen = {number: fleet.wait_selected(f"data-{number}") for number in range(4)}
        assert set(chosen.values()) == set(fleet.nodes), chosen
        for number in range(3):
            fleet.provision(f"data-{number}")
        fleet.wait_reason("g-3", "data-3 is not bound yet")
        fleet.a_later_pod_runs()
        assert not fleet.bound("g"), "the claim of one pod is not bound yet"
        fleet.provision("data-3")
        for pod in fleet.wait_bound("g", 4):
            assert node_of(pod) == chosen[int(pod["metadata"]["name"][-1])], (chosen, fleet.states())
        fleet.check_room()


def a_claim_that_never_binds_gives_the_gpus_back(cluster, kubeconfig):
    with Volumes(cluster, kubeconfig, flags=["--volume-wait", "8s"]) as fleet:
        fleet.add_nodes(1)
        for number in range(2):
            fleet.add_claim(f"data-{number}", fleet.late)
        fleet.make(*[fleet.with_claim(pod, f"data-{number}") for number, pod in enumerate(fleet.gang("g", 2, gpus=4))])
        fleet.wait_selected("data-1")
        fleet.make(fleet.pod("other", 8))
        fleet.provision("data-0")
        fleet.wait_bound("other", 1, 30)
        assert not fleet.bound("g"), fleet.states()
        said = fleet.wait_reason("g-1", "claim data-1 is not bound yet")
        assert "given up after 8 s" in said, said
        assert len(fleet.pods("g")) == 2, "no pod of it was deleted"
        cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods/other")
        fleet.provision("data-1")
        fleet.wait_bound("g", 2)
        fleet.check_room()


def attach_limits_are_obeyed(cluster, kubeconfig):
    """Volumes of a CSI driver that are there already; one node attaches one of them, the other two."""
    csi, driver = "/apis/storage.k8s.io/v1/csinodes", "csi.berth.test"

    def limit(node, count):
        cluster.make(csi, {"metadata": {"name": node}, "spec": {"drivers": [
            {"name": driver, "nodeID": node, "allocatable": {"count": count}}]}})
    with Volumes(cluster, kubeconfig) as fleet:
        small, large = fleet.add_nodes(2)
        limit(small, 1)
        limit(large, 2)
        for number in range(4):
            name = f"{fleet.namespace}-csi-{number}"
            cluster.make(VOLUMES, {"metadata": {"name": name}, "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": fleet.immediate,
                "persistentVolumeReclaimPolicy": "Retain", "csi": {"driver": driver, "volumeHandle": name}}})
            fleet.made.append(name)
            fleet.add_claim(f"data-{number}", fleet.immediate, volumeName=name)
            fleet.make(fleet.with_claim(fleet.pod(f"p-{number}", 1), f"data-{number}"))
        fleet.wait_bound("p", 3, 150)
        assert sorted(map(node_of, fleet.bound("p"))) == [small, large, large], fleet.states()
        waiting, = [pod["metadata"]["name"] for pod in fleet.pods("p") if not node_of(pod)]
        fleet.wait_reason(waiting, "can attach 1 more volumes of driver csi.berth.test")
        cluster.delete(f"{csi}/{small}")
        limit(small, 2)
        fleet.wait_bound("p", 4)
        for node in (small, large):
            cluster.delete(f"{csi}/{node}")


def a_bound_local_volume_pins_its_pod(cluster, kubeconfig):
    with Volumes(cluster, kubeconfig) as fleet:
        nodes = fleet.add_nodes(3)
        fleet.add_volume(f"{fleet.namespace}-local", fleet.immediate, ["ReadWriteOnce"], "kubernetes.io/hostname", [nodes[1]])
        fleet.add_claim("local", fleet.immediate, volumeName=f"{fleet.namespace}-local")
        eventually("the claim is bound", lambda: fleet.claim("local")["status"]["phase"] == "Bound")
        fleet.make(*[fleet.with_claim(fleet.pod(f"p{number}", 4), "local") for number in range(3)])
        for pod in fleet.wait_bound("p", 2):
            assert node_of(pod) == nodes[1], fleet.states()
        third = next(name for name, state in fleet.states().items() if state[0] is None)
        fleet.wait_reason(third, "GPU|hostname")
        assert len(fleet.bound("p")) == 2, "the two other nodes are empty, but do not have the volume"


def a_volume_of_several_nodes_and_a_class_of_one_zone_restrict_nodes(cluster, kubeconfig):
    with Volumes(cluster, kubeconfig) as fleet:
        zones = {fleet.add_nodes(1, labels={"topology.kubernetes.io/zone": zone})[0]: zone for zone in ("z1", "z2", "z3")}
        allowed = fleet.add_class("zoned", "WaitForFirstConsumer", allowedTopologies=[
            {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["z2", "z3"]}]}])
        fleet.add_claim("zonal", allowed)
        fleet.make(fleet.with_claim(fleet.pod("a", 8), "zonal"))
        assert zones[fleet.wait_selected("zonal")] in ("z2", "z3")
        fleet.provision("zonal", "topology.kubernetes.io/zone", ["z2", "z3"])
        fleet.wait_bound("a", 1)
        fleet.make(fleet.with_claim(fleet.pod("b", 8), "zonal"), fleet.with_claim(fleet.pod("c", 8), "zonal"))
        eventually(lambda: f"two run: {fleet.states()}", lambda: len(fleet.bound()) == 2)
        assert {zones[node_of(pod)] for pod in fleet.bound()} == {"z2", "z3"}, fleet.states()
        left = next(name for name, state in fleet.states().items() if state[0] is None)
        fleet.wait_reason(left, ".")
        assert len(fleet.bound()) == 2, fleet.states()


def what_a_claim_waits_for_is_said(cluster, kubeconfig):
    with Volumes(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(fleet.with_claim(fleet.pod("missing", 1), "absent"))
        fleet.wait_reason("missing", "claim absent does not exist")
        fleet.add_claim("absent", fleet.immediate)
        fleet.wait_reason("missing", "claim absent is not bound yet", 90)
        assert fleet.selected("absent") is None
        fleet.provision("absent", values=fleet.nodes)
        fleet.wait_bound("missing", 1)
        fleet.add_claim("alone", fleet.immediate, "ReadWriteOncePod")
        fleet.provision("alone", values=fleet.nodes)
        fleet.make(fleet.with_claim(fleet.pod("first", 1), "alone"))
        fleet.wait_bound("first", 1)
        fleet.make(fleet.with_claim(fleet.pod("second", 1), "alone"))
        fleet.wait_reason("second", "claim alone is ReadWriteOncePod, and pod first uses it")
        cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods/first")
        fleet.wait_bound("second", 1)


def a_gang_that_comes_back_goes_where_its_volume_is(cluster, kubeconfig):
    with Volumes(cluster, kubeconfig) as fleet:
        first, = fleet.add_nodes(1)
        fleet.add_claim("data", fleet.late, "ReadWriteMany")
        job = fleet.pod("x", 2)
        fleet.with_claim(job, "data")
        cluster.make(f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs", {
            "metadata": {"name": "train"}, "spec": {
                "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0,
                "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
                "template": {"spec": job["spec"]}}})
        fleet.provision("data")
        fleet.wait_bound("train", 2)
        fleet.add_nodes(1)
        cluster.kubectl("drain", first, "--ignore-daemonsets", "--timeout=60s")
        eventually(lambda: f"new pods: {fleet.states()}", lambda: len(fleet.pods("train")) == 2 and not fleet.bound("train"), 90)
        fleet.a_later_pod_runs()
        assert not fleet.bound("train"), "the other node does not have the volume"
        cluster.kubectl("uncordon", first)
        eventually(lambda: f"both are on {first}: {fleet.states()}",
                   lambda: [node_of(pod) for pod in fleet.bound("train")] == [first, first], 90)
        fleet.check_room()


def killed_while_it_waits_for_volumes_it_goes_on(cluster, kubeconfig):
    with Volumes(cluster, kubeconfig) as fleet:
        fleet.add_nodes(2)
        for number in range(4):
            fleet.add_claim(f"data-{number}", fleet.late)
        fleet.make(*[fleet.with_claim(pod, f"data-{number}") for number, pod in enumerate(fleet.gang("g", 4, gpus=4))])
        for number in range(4):
            fleet.wait_selected(f"data-{number}")
            fleet.server.kill()
            fleet.provision(f"data-{number}")
            fleet.start()
        fleet.wait_bound("g", 4)
        assert len(fleet.server.all("/v1/jobs?finished=true")) == 1, fleet.berth("jobs", "--all")
        fleet.check_room()


def without_its_rights_it_starts_and_says_what_is_missing(cluster, kubeconfig):
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-volumes"
    rules = cluster.get(role)["rules"]
    cluster.patch(role, {"rules": []})
    try:
        with Volumes(cluster, kubeconfig, flags=shorter_waits()) as fleet:
            fleet.add_nodes(1)
            log = fleet.server.tail()
            assert re.search("does not let this user: .*list persistentvolumeclaims.*patch persistentvolumeclaims", log), log
            fleet.add_claim("data", fleet.late)
            fleet.make(fleet.pod("plain", 1), fleet.with_claim(fleet.pod("claims", 1), "data"))
            fleet.wait_bound("plain", 1)
            fleet.wait_reason("claims", "may not read PersistentVolumeClaims")
            cluster.patch(role, {"rules": rules})
            fleet.provision("data")
            fleet.wait_bound("claims", 1)
    finally:
        cluster.patch(role, {"rules": rules})


if __name__ == "__main__":
    sys.exit(main([a_gang_with_a_claim_per_pod_starts_whole, a_claim_that_never_binds_gives_the_gpus_back,
                   attach_limits_are_obeyed, a_bound_local_volume_pins_its_pod, a_volume_of_several_nodes_and_a_class_of_one_zone_restrict_nodes,
                   what_a_claim_waits_for_is_said, a_gang_that_comes_back_goes_where_its_volume_is,
                   killed_while_it_waits_for_volumes_it_goes_on, without_its_rights_it_starts_and_says_what_is_missing]))

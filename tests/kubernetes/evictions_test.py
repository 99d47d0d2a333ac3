#!/usr/bin/env python3
"""Jobs that give way on a real API server with PodDisruptionBudgets: who is preempted or moved asks the budget, and what an
owner reclaims does not."""
import sys

from cluster import condition, eventually
from fleet import Fleet, main, shorter_waits

KEEP = "berth.test/keep"
QUEUES = {"red": {"guaranteed": {"gpus": 8}}, "blue": {}}


def budget(fleet, name, least):
    """A budget of the pods with the label app=name, which the API server's controller has counted."""
    path = f"/apis/policy/v1/namespaces/{fleet.namespace}/poddisruptionbudgets"
    fleet.cluster.make(path, {"metadata": {"name": name}, "spec": {
        "minAvailable": least, "selector": {"matchLabels": {"app": name}}}})

    def counted():
        status = fleet.cluster.get(f"{path}/{name}").get("status", {})
        return status.get("currentHealthy") == least and status.get("disruptionsAllowed") == 0
    eventually(lambda: f"the budget is counted: {fleet.cluster.get(f'{path}/{name}')}", counted)
    return f"{path}/{name}"


def a_budget_keeps_a_preempted_gang_until_it_allows_it(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(*fleet.gang("low", 2, gpus=4, labels={"app": "low", "berth.dev/priority-class": "dev"}))
        fleet.wait_bound("low", 2)
        path = budget(fleet, "low", 2)
        fleet.make(fleet.pod("high", 8, {"berth.dev/priority-class": "production"}))
        said = fleet.wait_event("low-0", "EvictionRefused")
        assert "disruption budget low needs 2 healthy pods" in said, said
        fleet.server.pass_time(5)  # longer than the grace of berth's configuration
        fleet.a_later_pod_runs()
        assert len(fleet.bound("low")) == 2 and not fleet.bound("high"), fleet.states()
        assert "EvictionRefused" not in str(cluster.events_of(fleet.namespace, "low-1")), "the first pod is asked for alone"
        eventually(fleet.server.tail, lambda: "disruption budget low" in fleet.server.tail())
        cluster.delete(path)
        fleet.wait_bound("high", 1, 90)
        assert not fleet.bound("low"), fleet.states()
        fleet.check_room()


def killed_while_a_budget_keeps_its_victim_it_goes_on(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(fleet.pod("low", 8, {"app": "low", "berth.dev/priority-class": "dev"}))
        fleet.wait_bound("low", 1)
        path = budget(fleet, "low", 1)
        fleet.make(fleet.pod("high", 8, {"berth.dev/priority-class": "production"}))
        fleet.wait_event("low", "EvictionRefused")
        fleet.server.kill()
        fleet.start()
        fleet.a_later_pod_runs()
        assert len(fleet.bound("low")) == 1, fleet.states()
        cluster.delete(path)
        fleet.wait_bound("high", 1, 90)
        fleet.check_room()


def what_an_owner_reclaims_is_deleted_with_the_mark(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig, config={"queues": QUEUES}, queues="red, blue") as fleet:
        fleet.add_nodes(1)
        borrower = fleet.pod("borrower", 8, {"app": "borrower", "berth.dev/queue": "blue"})
        borrower["metadata"]["finalizers"] = [KEEP]  # so that it can be looked at when it is gone
        fleet.make(borrower)
        fleet.wait_bound("borrower", 1)
        budget(fleet, "borrower", 1)
        fleet.make(fleet.pod("owner", 8, {"berth.dev/queue": "red"}))
        path = f"/api/v1/namespaces/{fleet.namespace}/pods/borrower"
        try:
            eventually(lambda: f"it is deleted: {fleet.states()}", lambda: "deletionTimestamp" in cluster.get(path)["metadata"])
            mark = condition(cluster.get(path), "DisruptionTarget")
            assert mark and mark["status"] == "True" and mark["reason"] == "PreemptionByScheduler", mark
        finally:
            cluster.patch(path, {"metadata": {"finalizers": None}})
        fleet.wait_bound("owner", 1)


def without_the_right_to_evict_it_deletes_and_says_so(cluster, kubeconfig):
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-workloads"
    rules = cluster.get(role)["rules"]
    cluster.patch(role, {"rules": [rule for rule in rules if "pods/eviction" not in rule["resources"]]})
    try:
        with Fleet(cluster, kubeconfig, flags=shorter_waits()) as fleet:
            assert "create pods/eviction" in fleet.server.tail(), fleet.server.tail()
            fleet.add_nodes(1)
            fleet.make(fleet.pod("low", 8, {"app": "low", "berth.dev/priority-class": "dev"}))
            fleet.wait_bound("low", 1)
            budget(fleet, "low", 1)
            fleet.make(fleet.pod("high", 8, {"berth.dev/priority-class": "production"}))
            fleet.wait_bound("high", 1, seconds=120)  # a denial is believed when it has lasted for a while
            eventually(fleet.server.tail, lambda: "allows no eviction of pods" in fleet.server.tail(), 20)
    finally:
        cluster.patch(role, {"rules": rules})


if __name__ == "__main__":
    sys.exit(main([a_budget_keeps_a_preempted_gang_until_it_allows_it, killed_while_a_budget_keeps_its_victim_it_goes_on,
                   what_an_owner_reclaims_is_deleted_with_the_mark, without_the_right_to_evict_it_deletes_and_says_so]))

#!/usr/bin/env python3
"""berth's quotas on a real API server: who may run, who has to leave, and what its controller then does."""
import sys

from cluster import eventually
from fleet import Fleet, main


def a_maximum_keeps_the_next_job_waiting(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig, {"queues": {"red": {"max": {"gpus": 4}}, "blue": {}}}) as fleet:
        fleet.add_nodes(2)
        fleet.job("first", 4)
        fleet.wait_bound("first", 4)
        fleet.job("second", 4)
        eventually("its controller has made the pods", lambda: len(fleet.pods("second")) == 4)
        for pod in fleet.pods("second"):
            fleet.wait_reason(pod["metadata"]["name"], "red")
        assert not fleet.bound("second"), fleet.states()
        cluster.kubectl("delete", "job", "first", "-n", fleet.namespace)
        fleet.wait_bound("second", 4)


def a_borrowed_gang_leaves_and_comes_back(cluster, kubeconfig):
    """red is guaranteed all of the node. blue borrows it, is evicted whole, and runs again when red is done. The Job has two
    pods: its controller waits ten seconds before it replaces a pod that was stopped, twice that for two, and so on."""
    with Fleet(cluster, kubeconfig, {"queues": {"red": {"guaranteed": {"gpus": 8}}, "blue": {}}}, queues="red,blue") as fleet:
        fleet.add_nodes(1)
        fleet.job("borrower", 2, gpus=4, labels={"berth.dev/queue": "blue"})
        before = {pod["metadata"]["uid"] for pod in fleet.wait_bound("borrower", 2)}
        fleet.job("owner", 8, labels={"berth.dev/queue": "red"})
        fleet.wait_bound("owner", 8, 90)
        assert not fleet.bound("borrower"), fleet.states()
        fleet.check_room()
        eventually("its controller has made new pods", lambda: len(fleet.pods("borrower")) == 2)
        assert not before & {pod["metadata"]["uid"] for pod in fleet.pods("borrower")}
        cluster.kubectl("delete", "job", "owner", "-n", fleet.namespace)
        fleet.wait_bound("borrower", 2, 120)
        status = cluster.get(f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs/borrower")["status"]
        assert not [one for one in status.get("conditions", []) if one["type"] == "Failed"], status
        jobs = fleet.server.all("/v1/jobs?finished=true")
        assert [job for job in jobs if job["queue"] == "blue" and job["phase"] == "running" and job["attempt"] >= 2], jobs


def priority_decides_within_a_queue(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.job("low", 1, gpus=8, labels={"berth.dev/priority-class": "dev"})
        fleet.wait_bound("low", 1)
        fleet.job("high", 8, labels={"berth.dev/priority-class": "production"})
        fleet.wait_bound("high", 8, 90)
        assert not fleet.bound("low"), fleet.states()
        fleet.check_room()


def cancelling_in_berth_frees_the_gpus(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(*fleet.gang("g", 8))
        fleet.wait_bound("g", 8)
        job, = fleet.server.all("/v1/jobs")
        fleet.berth("cancel", str(job["id"]))
        eventually(lambda: f"its pods are deleted: {fleet.states()}", lambda: not fleet.bound("g"))
        fleet.make(*fleet.gang("h", 8))
        fleet.wait_bound("h", 8)


def what_ran_is_metered(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(*fleet.gang("g", 4))
        fleet.wait_bound("g", 4)
        fleet.server.pass_time(2)
        cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods", 0)

        def used():
            rows = fleet.server.ask("GET", "/v1/usage")["items"]
            return [row for row in rows if row["user"] == "kubernetes:" + fleet.namespace]
        assert eventually("a usage record of the namespace", used)


def why_answers_for_a_pod(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1, gpus=2)
        fleet.make(*fleet.gang("g", 4))
        text = fleet.wait_reason("g-0", "room for only 2 of its 4 tasks")
        job, = eventually("the job", lambda: fleet.server.all("/v1/jobs"))
        assert text.split(".")[0] in fleet.berth("why", str(job["id"])).replace("\n", " "), text
        described = cluster.kubectl("describe", "pod", "g-0", "-n", fleet.namespace)
        assert "room for only 2" in described, described


if __name__ == "__main__":
    sys.exit(main([a_maximum_keeps_the_next_job_waiting, a_borrowed_gang_leaves_and_comes_back, priority_decides_within_a_queue,
                   cancelling_in_berth_frees_the_gpus, what_ran_is_metered, why_answers_for_a_pod]))

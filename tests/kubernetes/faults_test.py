#!/usr/bin/env python3
"""berth on a real API server when things die: berth itself at any moment, the API server, and a second berth that comes."""
import os
import random
import sys
import time

from cluster import Refused, eventually, lives, node_of, overcommitted
from fleet import Fleet, main

LONG = os.environ.get("BERTH_LONG") == "1"


def gang_of(pod):
    return pod["metadata"]["labels"]["berth.dev/group"]


def killed_at_any_moment_it_binds_each_gang_once(cluster, kubeconfig):
    """50 gangs of 4 on 25 nodes: there is room for each GPU exactly once, so a place that is counted twice shows."""
    seed = int(os.environ.get("BERTH_SEED", random.randrange(1 << 30)))
    print("BERTH_SEED =", seed)
    chance = random.Random(seed)
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(25)
        pods = [pod for number in range(50) for pod in fleet.gang(f"g{number:02}", 4)]
        chance.shuffle(pods)
        over, places, kills = {}, {}, 0

        def look():
            over.update(overcommitted(cluster))
            for pod in fleet.pods():
                if node_of(pod):
                    places.setdefault(pod["metadata"]["uid"], set()).add(
                        (node_of(pod), pod["metadata"].get("annotations", {}).get("berth.dev/task")))
        made = 0
        while made < len(pods) or kills < (30 if LONG else 6):
            batch = chance.randrange(20, 60)
            fleet.make(*pods[made:made + batch])
            made += batch
            time.sleep(chance.random() * 0.6)  # allowed: a kill comes at any time
            fleet.server.kill()
            kills += 1
            look()
            fleet.start()
            time.sleep(chance.random() * 0.5)  # allowed: a kill comes at any time
            look()
        bound = fleet.wait_bound("g", 200, 180)
        look()
        assert not over, f"more GPUs were asked than there are: {over}"
        assert all(len(where) == 1 for where in places.values()), "a pod was bound twice"
        keys = [key for where in places.values() for _, key in where]
        assert len(keys) == len(set(keys)) == 200, "two pods are the same task"
        sizes = {}
        for pod in bound:
            sizes[gang_of(pod)] = sizes.get(gang_of(pod), 0) + 1
        assert sizes == {f"g{number:02}": 4 for number in range(50)}, sizes
        eventually("berth knows all of them as running",
                   lambda: len([job for job in fleet.server.all("/v1/jobs") if job["phase"] == "running"]) == 50)
        assert len(fleet.server.all("/v1/jobs?finished=true")) == 50, "a gang was submitted twice"


def a_gang_that_ends_while_berth_is_away_has_ended(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(*fleet.gang("short", 4, annotations={"berth.test/runs-for": "3s"}))
        fleet.wait_bound("short", 4)
        fleet.server.kill()
        eventually("they have completed", lambda: all(not lives(pod) for pod in fleet.pods("short")))
        fleet.start()
        fleet.make(fleet.pod("next", 8))
        fleet.wait_bound("next", 1)
        assert fleet.outcomes("short") == ["succeeded"], fleet.berth("jobs", "--all")


def a_gang_that_is_deleted_while_berth_is_away_is_gone(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        fleet.make(fleet.pod("lost", 8))
        fleet.wait_bound("lost", 1)
        fleet.server.kill()
        cluster.delete(f"/api/v1/namespaces/{fleet.namespace}/pods/lost", 0)
        eventually("it is deleted", lambda: not fleet.pods("lost"))
        fleet.start()
        fleet.make(fleet.pod("next", 8))
        assert node_of(fleet.wait_bound("next", 1)[0]) == node


def a_key_that_a_tenant_wrote_makes_no_task(cluster, kubeconfig):
    """A pod that names its node and carries the key of another's task is foreign use, also after a restart."""
    with Fleet(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        fleet.make(fleet.pod("victim", 4))
        victim, = fleet.wait_bound("victim", 1)
        fleet.add_namespace(fleet.namespace + "-thief", "blue")
        forged = fleet.pod("forged", 2, namespace=fleet.namespace + "-thief", annotations={
            "berth.dev/task": victim["metadata"]["annotations"]["berth.dev/task"], "berth.test/runs-for": "4s"})
        forged["spec"]["nodeName"] = node
        fleet.make(forged)
        fleet.server.kill()
        fleet.start()
        eventually("it has ended", lambda: [pod for pod in fleet.pods(namespace=fleet.namespace + "-thief") if not lives(pod)])
        fleet.a_later_pod_runs()
        job, = [one for one in fleet.server.all("/v1/jobs?finished=true") if "-later-" not in one["name"]]
        assert job["phase"] == "running", job
        fleet.check_room()


def the_api_server_may_go_away(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(2)
        fleet.make(*fleet.gang("before", 4))
        fleet.wait_bound("before", 4)
        cluster.end("kube-apiserver", sig=9)
        eventually(lambda: "berth notices: " + fleet.server.tail(), lambda: "does not serve" in fleet.server.tail())
        assert "case" in fleet.berth("nodes"), "berth answers meanwhile"
        cluster.start_api_server()
        eventually("it is back", lambda: cluster.get(f"/api/v1/namespaces/{fleet.namespace}"))
        fleet.make(*fleet.gang("after", 8))
        fleet.wait_bound("after", 8, 120)
        assert len(fleet.bound("before")) == 4
        fleet.check_room()


def etcd_may_go_away(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(*fleet.gang("before", 4))
        fleet.wait_bound("before", 4)
        cluster.end("etcd", sig=9)
        eventually("the API server notices", lambda: not is_ready(cluster))
        cluster.start_etcd()
        eventually("the API server answers again", lambda: answers(cluster), 60)
        fleet.make(*fleet.gang("after", 4))
        fleet.wait_bound("after", 4, 120)
        assert len(fleet.bound("before")) == 4
        fleet.check_room()


def is_ready(cluster):
    try:
        return cluster.raw("GET", "/readyz")[0] == 200
    except OSError:
        return False


def answers(cluster):
    try:
        return cluster.get("/api/v1/namespaces/default")
    except (OSError, Refused):
        return None


def a_second_berth_refuses(cluster, kubeconfig):
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        second = fleet.new_server("second")
        assert not second.start(), "two servers schedule one cluster"
        assert "ease" in second.tail() and fleet.server.process.poll() is None, second.tail()
        lease = cluster.get("/apis/coordination.k8s.io/v1/namespaces/berth/leases/berth")
        assert lease["spec"]["holderIdentity"], lease
        fleet.make(fleet.pod("one", 1))
        fleet.wait_bound("one", 1)


if __name__ == "__main__":
    sys.exit(main([killed_at_any_moment_it_binds_each_gang_once, a_gang_that_ends_while_berth_is_away_has_ended,
                   a_gang_that_is_deleted_while_berth_is_away_is_gone, a_key_that_a_tenant_wrote_makes_no_task,
                   the_api_server_may_go_away, etcd_may_go_away, a_second_berth_refuses]))

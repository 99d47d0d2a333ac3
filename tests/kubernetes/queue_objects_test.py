#!/usr/bin/env python3
"""The quota tree as objects of a real API server, `kubectl get queues`, and the plugin kubectl-berth."""
import os
import subprocess
import sys

from cluster import eventually
from fleet import CONFIG, DEPLOY, Fleet, main, shorter_waits
from server import berth_binary

QUEUES = "/apis/berth.dev/v1alpha1/queues"
TREE = {"queues": {"lab": {"guaranteed": {"gpus": 4}, "queues": {"nlp": {}, "Vision_2": {}}},
                   "red": {"max": {"gpus": 6}, "weight": 3}}}


def install_crd(cluster):
    cluster.kubectl("apply", "-f", os.path.join(DEPLOY, "crd.yaml"))
    cluster.kubectl("wait", "--for=condition=Established", "crd/queues.berth.dev", "--timeout=30s")
    cluster.kubectl("delete", "queues", "--all")  # those of the case before


def queue(cluster, name):
    return cluster.get(f"{QUEUES}/{name}")


def plugin(cluster, fleet, *words, code=0):
    """What `kubectl berth` printed; the plugin is found as kubectl finds it, by its name in a folder of PATH."""
    environment = {**os.environ, "PATH": f"{DEPLOY}:{cluster.bin}:{os.path.dirname(berth_binary())}:{os.environ['PATH']}",
                   "KUBECONFIG": cluster.admin, "BERTH_SERVER": f"http://127.0.0.1:{fleet.server.port}",
                   "BERTH_TOKEN_FILE": os.path.join(fleet.server.data, "token")}
    ran = subprocess.run(["kubectl", "berth", *words], capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == code, (words, ran)
    return ran.stdout + ran.stderr


def kubectl_shows_the_tree(cluster, kubeconfig):
    install_crd(cluster)
    with Fleet(cluster, kubeconfig, config=TREE, queues="red") as fleet:
        fleet.add_nodes(1)
        fleet.make(fleet.pod("runs", 5), fleet.pod("waits", 2))
        fleet.wait_bound("runs", 1)
        red = eventually(lambda: f"the queue shows what is used: {queue(cluster, 'red')}",
                         lambda: (queue(cluster, "red") or {}).get("status", {}).get("usedGPUs") == "5" and queue(cluster, "red"))
        assert red["spec"]["maxGPUs"] == "6" and red["spec"]["weight"] == 3, red
        assert red["status"]["borrowedGPUs"] == "5" and red["status"]["pending"] == 1, red
        eventually(lambda: str(queue(cluster, "red")), lambda: "(max)" in queue(cluster, "red")["status"].get("why", ""))
        eventually(lambda: str(queue(cluster, "lab")), lambda: queue(cluster, "lab")["status"]["lentGPUs"] == "4")
        assert queue(cluster, "lab")["spec"]["guaranteedGPUs"] == "4", queue(cluster, "lab")
        names = {one["spec"]["path"]: one["metadata"]["name"] for one in cluster.items(QUEUES)}
        assert names["lab/nlp"] == "lab.nlp" and names["lab/Vision_2"].startswith("lab.vision-2-"), names
        lines = cluster.kubectl("get", "queues").splitlines()
        assert lines[0].split() == ["NAME", "PATH", "GUARANTEED", "MAX", "USED", "BORROWED", "LENT", "RUNNING", "PENDING"], lines
        assert next(line for line in lines if line.startswith("red ")).split() == ["red", "red", "6", "5", "5", "0", "1", "1"], lines


def an_object_that_somebody_changed_is_written_over(cluster, kubeconfig):
    install_crd(cluster)
    with Fleet(cluster, kubeconfig, config=TREE, queues="red", flags=shorter_waits()) as fleet:
        eventually("the queue is shown", lambda: queue(cluster, "lab"))
        cluster.patch(f"{QUEUES}/lab", {"spec": {"guaranteedGPUs": "100"}})
        cluster.make(QUEUES, {"apiVersion": "berth.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "mine"},
                              "spec": {"path": "mine"}})
        eventually("it is as the configuration has it", lambda: queue(cluster, "lab")["spec"]["guaranteedGPUs"] == "4", 100)
        eventually(fleet.server.tail, lambda: "Queue lab was changed by somebody" in fleet.server.tail())
        assert "Queue mine is no queue of berth's configuration" in fleet.server.tail(), fleet.server.tail()
        cluster.delete(f"{QUEUES}/mine")
        fleet.write_config({**CONFIG, "queues": {"red": {}}})
        fleet.berth("apply", "--file", fleet.config)
        eventually("its object goes with it", lambda: queue(cluster, "lab.nlp") is None and queue(cluster, "lab") is None, 100)


def without_the_definition_it_runs_all_the_same(cluster, kubeconfig):
    cluster.kubectl("delete", "-f", os.path.join(DEPLOY, "crd.yaml"), "--ignore-not-found")
    with Fleet(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        fleet.make(fleet.pod("a", 1))
        fleet.wait_bound("a", 1)


def the_plugin_answers(cluster, kubeconfig):
    install_crd(cluster)
    with Fleet(cluster, kubeconfig, config=TREE, queues="red") as fleet:
        fleet.add_nodes(1)
        fleet.make(fleet.pod("runs", 5), fleet.pod("waits", 2))
        fleet.wait_bound("runs", 1)
        assert "bound to node" in plugin(cluster, fleet, "why", "-n", fleet.namespace, "runs")
        fleet.wait_reason("waits", "(max)")
        said = plugin(cluster, fleet, "why", "-n", fleet.namespace, "waits")
        assert "(max)" in said and "6" in said, said
        eventually("the queue is shown", lambda: queue(cluster, "red"))
        assert "PATH" in plugin(cluster, fleet, "queues")
        assert "red" in plugin(cluster, fleet, "usage"), plugin(cluster, fleet, "usage")
        assert "there is no 'wy'" in plugin(cluster, fleet, "wy", code=2)
        assert "name a pod" in plugin(cluster, fleet, "why", code=2)


CASES = [kubectl_shows_the_tree, an_object_that_somebody_changed_is_written_over, without_the_definition_it_runs_all_the_same,
         the_plugin_answers]

if __name__ == "__main__":
    sys.exit(main(CASES))

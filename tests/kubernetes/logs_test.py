#!/usr/bin/env python3
"""`berth logs` and `berth run` of pods: through the API server, and a kubelet that KWOK plays. What it serves is read by the
kubelet's own code from a file as containerd writes it; every container here has the same one."""
import os
import subprocess
import sys
import time

from cluster import eventually, stretched
from fleet import main
from own_jobs_test import PODS, Own, end, own_pods, submit, wait_job, wait_running
from server import berth_binary


class Log:
    """The file that KWOK serves."""

    def __init__(self, cluster):
        self.path = cluster.path("pod.log")
        self.count = 0
        with open(self.path, "w"):
            pass

    def write(self, *lines, second=None, stream="stdout"):
        with open(self.path, "a") as file:
            for line in lines:
                self.count += 1
                file.write(f"2026-11-25T16:00:{self.count // 50 % 60 if second is None else second:02d}.{self.count:09d}Z "
                           f"{stream} F {line}\n")


class Follower:
    """`berth WORDS` that runs on; what it has printed so far."""

    def __init__(self, fleet, *words):
        self.path = os.path.join(fleet.directory, "followed")
        with open(self.path, "wb") as file:
            self.process = subprocess.Popen([berth_binary(), *words], stdout=file, stderr=file, env={
                **os.environ, "BERTH_SERVER": f"http://127.0.0.1:{fleet.server.port}",
                "BERTH_TOKEN_FILE": os.path.join(fleet.server.data, "token")})

    def text(self):
        with open(self.path) as file:
            return file.read()

    def wait_text(self, text):
        eventually(lambda: f"it prints {text!r}, but it printed {self.text()[-500:]!r}", lambda: text in self.text(), 30)

    def wait_end(self):
        try:
            return self.process.wait(stretched(30))
        finally:
            self.process.kill()


def a_job_s_log_is_read(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        cluster.give_kubelet(node)
        log = Log(cluster)
        log.write(*[f"step {number}" for number in range(500)])
        log.write("a warning", stream="stderr")
        job = submit(fleet, "--gpus", "1", "--", "train")
        pod, = wait_running(fleet, job, 1)
        want = "".join(f"step {number}\n" for number in range(500)) + "a warning\n"
        assert fleet.berth("logs", str(job)) == want, fleet.berth("logs", str(job))[-300:]
        assert fleet.berth("logs", str(job), "--tail", "2") == "step 499\na warning\n"
        part = fleet.server.text(f"/v1/jobs/{job}/logs?from=7&limit=9")
        assert part == want[7:16], part
        assert fleet.berth("logs", str(job), "--stderr") == "", "it is in one stream with standard output"
        end(fleet, pod)
        wait_job(fleet, job, outcome="succeeded")
        assert fleet.berth("logs", str(job)) == want, "the pod is kept for a while, and its log with it"


def a_log_is_followed_to_its_end(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        cluster.give_kubelet(node)
        log = Log(cluster)
        log.write("first")
        job = submit(fleet, "--gpus", "1", "--", "train")
        pod, = wait_running(fleet, job, 1)
        follower = Follower(fleet, "logs", str(job), "--follow")
        follower.wait_text("first\n")
        for number in range(40):
            log.write(f"step {number}")
            time.sleep(0.05)  # allowed: a program that prints while it is followed
        follower.wait_text("step 39\n")
        fleet.server.kill()
        log.write("while berth was away")
        port = fleet.server.port
        fleet.server.flags += ["--port", str(port)]
        fleet.start()
        follower.wait_text("while berth was away\n")
        end(fleet, pod)
        code = follower.wait_end()
        shown = [line for line in follower.text().splitlines() if not line.startswith("berth:")]
        assert shown == ["first", *[f"step {number}" for number in range(40)], "while berth was away"], follower.text()
        assert code == 0, (code, follower.text())


def a_new_file_of_the_node_loses_no_newer_line(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        cluster.give_kubelet(node)
        log = Log(cluster)
        log.write(*["old"] * 30, second=1)
        job = submit(fleet, "--gpus", "1", "--", "train")
        wait_running(fleet, job, 1)
        follower = Follower(fleet, "logs", str(job), "--follow")
        eventually(lambda: f"all is shown: {follower.text()!r}", lambda: follower.text().count("old\n") == 30)
        with open(log.path, "w"):
            pass
        log.write("newer", second=2)
        follower.wait_text("newer\n")
        assert follower.text().count("old\n") == 30 and follower.text().count("newer\n") == 1, follower.text()
        fleet.berth("cancel", str(job))
        follower.wait_end()


def a_pod_that_is_a_job_has_a_log(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        cluster.give_kubelet(node)
        Log(cluster).write("of a pod")
        pod = fleet.pod("two", 1)
        pod["spec"]["containers"].append({"name": "sidecar", "image": "x"})
        fleet.make(pod)
        fleet.wait_bound("two", 1)
        wait_job(fleet, 1, phase="running")
        assert fleet.berth("logs", "1") == "of a pod\n"


def what_cannot_be_read_is_said(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)  # has no kubelet
        Log(cluster)
        job = submit(fleet, "--gpus", "1", "--", "train")
        pod, = wait_running(fleet, job, 1)
        said = fleet.berth("logs", str(job), code=None)
        assert f"the log of pod berth-jobs/{pod['metadata']['name']} could not be read from its node" in said, said
        fleet.berth("cancel", str(job))
        eventually("the pod is gone", lambda: not own_pods(fleet, job))
        wait_job(fleet, job, outcome="cancelled")
        said = fleet.berth("logs", str(job), code=None)
        assert "is gone, and its log with it" in said, said


def run_shows_the_log_and_ends_with_the_code(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        cluster.give_kubelet(node)
        Log(cluster).write("hello from a pod")
        runner = Follower(fleet, "run", "--queue", "red", "--image", "a:1", "--gpus", "1", "--", "train")
        pod, = wait_running(fleet, 1, 1)
        runner.wait_text("hello from a pod\n")
        end(fleet, pod, 7)
        assert runner.wait_end() == 7, runner.text()


def a_hung_kubelet_holds_up_nobody_else(cluster, kubeconfig):
    """More logs are read than at a time, of a node whose kubelet takes connections and says nothing."""
    import socket
    with socket.socket() as silent, Own(cluster, kubeconfig) as fleet:
        silent.bind(("127.0.0.1", 0))
        silent.listen(100)
        node, = fleet.add_nodes(1)
        cluster.ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": silent.getsockname()[1]}}}}, "application/merge-patch+json")
        job = submit(fleet, "--gpus", "1", "--", "train")
        wait_running(fleet, job, 1)
        readers = [Follower(fleet, "logs", str(job)) for _ in range(20)]
        other = submit(fleet, "--gpus", "1", "--", "train")
        wait_running(fleet, other, 1)
        wait_job(fleet, other, phase="running")
        # Each is told when the kubelet has not answered for a while. The other job has not waited for all of them.
        assert any(reader.process.poll() is None for reader in readers), "it waited for the logs"
        for reader in readers:
            reader.process.kill()
            reader.process.wait()


if __name__ == "__main__":
    sys.exit(main([a_job_s_log_is_read, a_log_is_followed_to_its_end, a_new_file_of_the_node_loses_no_newer_line,
                   a_pod_that_is_a_job_has_a_log, what_cannot_be_read_is_said, run_shows_the_log_and_ends_with_the_code,
                   a_hung_kubelet_holds_up_nobody_else]))

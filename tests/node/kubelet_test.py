#!/usr/bin/env python3
"""berth on real kubelets: pods of containers that run, save, are refused, and lose their devices. It starts a cluster of its own
in namespaces of its own; see alone.py."""
import http.server
import json
import os
import re
import subprocess
import sys
import threading

import alone
from node import DEVICES, NodeCluster, node_programs

from cluster import HERE, ROOT, condition, eventually, node_of, programs, stretched  # noqa: E402
from fleet import berth_binary, main  # noqa: E402
from own_jobs_test import Own, SPACE, job_of, own_pods, wait_job, wait_running  # noqa: E402
from terminal import Terminal  # noqa: E402

GPU = "nvidia.com/gpu"
CHART = os.path.join(ROOT, "deploy", "helm", "berth")
HELM = ""
SMALL = {"cpu": "10m", "memory": "32Mi"}
STAY = ("sh", "-c", "trap 'exit 1' TERM; sleep 600 & wait")


class OnKubelets(Own):
    """A case: all its pods are gone behind it, from their nodes too, and the nodes are as they were."""

    def __init__(self, cluster, kubeconfig, **options):
        super().__init__(cluster, kubeconfig, **options)
        eventually("both nodes are known", lambda: all(self.node(name) for name in "ab"))

    def __exit__(self, kind, value, trace):
        for node in (self.cluster.a, self.cluster.b):
            node.order()
            node.cordon(False)
        if kind is None:
            self.remove_pods()
        super().__exit__(kind, value, trace)
        for node in (self.cluster.a, self.cluster.b):
            node.wait_allocatable(GPU, DEVICES[GPU])

    def remove_pods(self):
        """By their kubelets: a pod that is removed by force may hold its devices for a while."""
        for space in (self.namespace, SPACE):
            self.cluster.ask("DELETE", f"/apis/batch/v1/namespaces/{space}/jobs?propagationPolicy=Background")
            for pod in self.cluster.pods(space):
                self.cluster.delete(f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}", 1)
        eventually("the pods are gone", lambda: not self.cluster.pods(self.namespace) + self.cluster.pods(SPACE))

    def submit(self, *words, image="berth.test/shell:1"):
        """A job of small pods; returns its number."""
        said = self.berth("submit", "--queue", "red", "--image", image, "--cpus", "0.01", "--memory", "32Mi", "--workdir", "/", *words)
        return int(next(word for word in said.split() if word.isdigit()))

    def pod(self, name, gpus=1, labels=None, annotations=None, namespace=None, **spec):
        containers = self.container({GPU: gpus} if gpus else {}, *STAY)
        return super().pod(name, 0, labels, annotations, namespace, **{"containers": containers, **spec})

    def container(self, devices, *command, image="berth.test/shell:1", **more):
        return [{"name": "main", "image": image, "command": list(command),
                 "resources": {"requests": SMALL, "limits": {name: str(count) for name, count in devices.items()}}, **more}]

    def status_of(self, name):
        """The state of the pod's container: (word, what is known of it)."""
        pod = self.cluster.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")
        return next(iter(pod["status"].get("containerStatuses", [{}])[0].get("state", {"none": {}}).items()))

    def log_of_pod(self, name):
        return self.cluster.kubectl("logs", "-n", self.namespace, name)


def a_pod_runs_and_its_exit_and_its_log_are_told(cluster, kubeconfig):
    with OnKubelets(cluster, kubeconfig) as fleet:
        job = fleet.submit("--gpus", "2", "--", "sh", "-c", "echo rank $RANK has $TEST_DEVICES; exit 7")
        seen = wait_job(fleet, job, outcome="failed")
        assert seen["code"] == 7, seen
        log = fleet.berth("logs", str(job))
        assert re.fullmatch(r"rank 0 has gpu-\d,gpu-\d\n", log), log
        job = fleet.submit("--gpus", "1", "--", "true")
        wait_job(fleet, job, outcome="succeeded")


def a_gang_runs_on_two_kubelets(cluster, kubeconfig):
    with OnKubelets(cluster, kubeconfig) as fleet:
        job = fleet.submit("--tasks", "4", "--gpus", "4", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE: $TEST_DEVICES; exec sleep 600")
        pods = wait_running(fleet, job, 4)
        assert sorted(map(node_of, pods)) == ["a", "a", "b", "b"], pods
        given = []
        for task, pod in enumerate(pods):
            log = eventually("the log of the task", lambda number=task: fleet.berth("logs", str(job), "--task", str(number)))
            assert log.startswith(f"{task} of 4: "), log
            given += [(node_of(pod), device) for device in log.split()[-1].split(",")]
        assert len(set(given)) == 16, f"no device is given twice: {given}"
        fleet.check_room()
        fleet.berth("cancel", str(job))
        wait_job(fleet, job, outcome="cancelled")


def devices_of_each_kind_are_given(cluster, kubeconfig):
    with OnKubelets(cluster, kubeconfig) as fleet:
        kinds = {"mig": "nvidia.com/mig-1g.10gb", "shared": "nvidia.com/gpu.shared"}
        for name, kind in kinds.items():
            fleet.make(fleet.pod(name, containers=fleet.container({kind: 1}, "sh", "-c", "echo has $TEST_DEVICES; exec sleep 600")))
        for name, kind in kinds.items():
            fleet.wait_bound(name, 1)
            seen = eventually("its log", lambda at=name: fleet.log_of_pod(at))
            assert seen.startswith(f"has {kind.rpartition('/')[2]}-"), seen


def a_borrower_saves_gives_back_and_goes_on(cluster, kubeconfig):
    queues = {"red": {"guaranteed": {"gpus": 8}}, "blue": {"guaranteed": {"gpus": 8}}}
    with OnKubelets(cluster, kubeconfig, config={"queues": queues}, queues="red,blue") as fleet:
        kept = os.path.join(fleet.directory, "checkpoint")
        os.makedirs(kept)
        # A pod that ends with 0 has succeeded for its Job, also one that was asked to leave: so it says that it is not done.
        script = ("trap 'kill $child' TERM; RANK=$JOB_COMPLETION_INDEX python3 /train.py --steps 150 --step-ms 40 & child=$!; "
                  "wait; wait; grep -q '.step.: 150,' /kept/model.json")
        spec = {"schedulerName": "berth", "restartPolicy": "Never", "hostNetwork": True, "terminationGracePeriodSeconds": 20,
                "volumes": [{"name": "kept", "hostPath": {"path": kept, "type": "Directory"}}],
                "containers": fleet.container({GPU: 8}, "sh", "-c", script, image="berth.test/train:1",
                                              env=[{"name": name, "value": value} for name, value in {
                                                  "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400",
                                                  "BERTH_CHECKPOINT_DIR": "/kept"}.items()],
                                              volumeMounts=[{"name": "kept", "mountPath": "/kept"}])}
        cluster.make(f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs", {
            "metadata": {"name": "train", "namespace": fleet.namespace},
            "spec": {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0,
                     "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
                     "template": {"metadata": {"labels": {"berth.dev/queue": "blue"}}, "spec": spec}}})

        def steps():
            path = os.path.join(kept, "steps.jsonl")
            if not os.path.exists(path):
                return []
            with open(path) as file:
                return [json.loads(line)["step"] for line in file if line.endswith("\n")]
        eventually("it has trained a little", lambda: len(steps()) > 20)
        fleet.make(fleet.pod("owner", labels={"berth.dev/queue": "red"}, containers=fleet.container({GPU: 8}, "true")))
        eventually(lambda: f"the owner has run: {fleet.states()}", lambda: fleet.status_of("owner")[0] == "terminated")
        with open(os.path.join(kept, "model.json")) as file:
            saved = json.load(file)["step"]
        assert 20 < saved < 150 and steps() == list(range(1, saved + 1)), (saved, steps())
        eventually(lambda: f"the training has ended: {fleet.states()}, {steps()[-3:]}", lambda: cluster.get(
            f"/apis/batch/v1/namespaces/{fleet.namespace}/jobs/train")["status"].get("succeeded") == 2, 120)
        assert steps() == list(range(1, 151)), steps()
        job = next(one for one in fleet.server.all("/v1/jobs?finished=true") if one["name"] == "train")
        assert job["attempts"] == 2 and job["failures"] == 0, job


def a_device_that_is_taken_away_is_not_used(cluster, kubeconfig):
    with OnKubelets(cluster, kubeconfig) as fleet:
        cluster.a.order(*[f"unhealthy gpu-{number}" for number in range(3)])
        eventually(lambda: f"3 GPUs of a are gone: {fleet.berth('nodes')}", lambda: re.search(r"^a .* 11 of 11 ", fleet.berth("nodes"), re.M))
        job = fleet.submit("--tasks", "2", "--gpus", "8", "--", *STAY)
        fleet.a_later_pod_runs()
        assert not own_pods(fleet, job), fleet.berth("why", str(job))
        cluster.a.order()
        pods = wait_running(fleet, job, 2)
        cluster.a.order("unhealthy gpu-0")
        cluster.a.wait_allocatable(GPU, 7)
        fleet.a_later_pod_runs()
        assert [pod["metadata"]["uid"] for pod in wait_running(fleet, job, 2)] == [pod["metadata"]["uid"] for pod in pods], "it goes on"
        assert job_of(fleet, job)["phase"] == "running", job_of(fleet, job)


def adapters_of_the_network_limit_what_starts(cluster, kubeconfig):
    with OnKubelets(cluster, kubeconfig) as fleet:
        jobs = [fleet.submit("--countable", "rdma/hca=1", "--gpus", "1", "--", *STAY) for _ in range(5)]
        for job in jobs[:4]:
            wait_running(fleet, job, 1)
        why = eventually("the fifth says what it waits for", lambda: (said := fleet.berth("why", str(jobs[4]))) and "rdma/hca" in said and said)
        assert not own_pods(fleet, jobs[4]), why
        fleet.berth("cancel", str(jobs[0]))
        wait_running(fleet, jobs[4], 1)


def refused(cluster, kubeconfig, node, other, order, word):
    """The kubelet of `node` refuses a pod of a gang: the gang is unwound, and starts where it is not refused."""
    with OnKubelets(cluster, kubeconfig) as fleet:
        other.cordon()
        node.order(order, "unhealthy gpu-7")  # so that it is seen when the kubelet knows of both
        node.wait_allocatable(GPU, DEVICES[GPU] - 1)
        job = fleet.submit("--tasks", "2", "--gpus", "2", "--", *STAY)
        eventually(lambda: f"the kubelet says {word}: {[pod['status'] for pod in cluster.pods(SPACE)]}; {job_of(fleet, job)}",
                   lambda: word in fleet.berth("job", str(job)) or word in json.dumps([pod["status"] for pod in cluster.pods(SPACE)]))
        other.cordon(False)

        def running():  # those that were refused are kept for a while
            return [pod for pod in own_pods(fleet, job) if pod["status"].get("phase") == "Running"]
        eventually(lambda: f"2 pods run: {fleet.berth('job', str(job))}", lambda: len(running()) == 2)
        assert {node_of(pod) for pod in running()} == {other.name}, running()
        seen = wait_job(fleet, job, phase="running")
        assert seen["failures"] == 0, seen


def a_gang_that_a_device_plugin_refuses_starts_elsewhere(cluster, kubeconfig):
    refused(cluster, kubeconfig, cluster.a, cluster.b, f"refuse {GPU}", "UnexpectedAdmissionError")


def a_gang_whose_devices_cannot_be_aligned_starts_elsewhere(cluster, kubeconfig):
    refused(cluster, kubeconfig, cluster.b, cluster.a, f"far {GPU}", "TopologyAffinityError")


def a_kubelet_that_stops_and_starts_keeps_its_pods(cluster, kubeconfig):
    with OnKubelets(cluster, kubeconfig) as fleet:
        job = fleet.submit("--tasks", "2", "--gpus", "8", "--", *STAY)
        before = wait_running(fleet, job, 2)
        cluster.a.kill_kubelet()
        cluster.end("device-plugin-a")
        cluster.a.start_kubelet()
        cluster.a.wait_allocatable(GPU, 0)
        fleet.a_later_pod_runs()
        cluster.a.start_plugin()
        cluster.a.wait_allocatable(GPU, DEVICES[GPU])
        fleet.a_later_pod_runs()
        after = wait_running(fleet, job, 2)
        told = [[pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["containerID"]] for pod in before + after]
        assert told[:2] == told[2:], told
        assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in after] == [0, 0], after
        seen = job_of(fleet, job)
        assert seen["attempts"] == 1 and seen["phase"] == "running", seen
        fleet.check_room()


class Shells:
    """The right to open shells in pods, as the chart gives it in one namespace; it is gone behind it."""

    def __init__(self, cluster, *namespaces):
        self.cluster = cluster
        made = subprocess.run([HELM, "template", "berth", CHART, "--namespace", "berth", "--show-only", "templates/rbac.yaml", "--set-json",
                               "shells=" + json.dumps({"enabled": True, "namespaces": namespaces})], capture_output=True, text=True, check=True)
        self.objects = "---".join(one for one in made.stdout.split("---") if "berth-shells" in one)

    def __enter__(self):
        self.cluster.kubectl("apply", "-f", "-", text=self.objects)

    def __exit__(self, kind, value, trace):
        self.cluster.kubectl("delete", "-f", "-", text=self.objects)


def a_shell_opens_in_a_pod_where_the_chart_gives_the_right(cluster, kubeconfig):
    with OnKubelets(cluster, kubeconfig) as fleet:
        own = fleet.submit("--gpus", "1", "--env", "MARK=of-the-job", "--", *STAY)
        wait_running(fleet, own, 1)
        wait_job(fleet, own, phase="running")
        fleet.make(fleet.pod("of-others"))
        other = eventually("the pod of others is a job that runs", lambda: next(
            (one["id"] for one in fleet.server.all("/v1/jobs") if one["name"] == "of-others" and one["phase"] == "running"), None))
        environment = {**os.environ, "TERM": "dumb", "BERTH_SERVER": f"http://127.0.0.1:{fleet.server.port}",
                       "BERTH_TOKEN_FILE": os.path.join(fleet.server.data, "token")}

        def run(*words, stdin=""):
            ran = subprocess.run([berth_binary(), "exec", *words], env=environment, input=stdin, capture_output=True, text=True,
                                 timeout=stretched(60), check=False)
            return ran.returncode, ran.stdout, ran.stderr
        code, out, said = run(str(own), "--", "true")
        assert code != 0 and out == "" and "set shells.enabled in the chart" in said, (code, out, said)
        with Shells(cluster, SPACE, fleet.namespace):
            eventually("the right is in force", lambda: run(str(own), "--", "true")[0] == 0)
            for job in (own, other):
                assert run(str(job), "--", "sh", "-c", "echo out; echo wrong >&2; exit 3") == (3, "out\n", "wrong\n")
                assert run("-i", str(job), "--", "cat", stdin="x\n" * 50_000) == (0, "x\n" * 50_000, "")
                more = run("-i", str(job), "--", "sh", "-c", "sleep 1; busybox wc -c", stdin="x" * 8_000_000)
                assert more == (0, "8000000\n", ""), more
                assert run(str(job), "--", "cat") == (0, "", ""), "without -i it has no input"
                code, out, said = run(str(job), "--", "no-such-program")
                assert code == 127 and "no-such-program" in said, (code, out, said)
            assert run(str(own), "--", "sh", "-c", "echo $MARK; pwd") == (0, "of-the-job\n/\n", "")
            code, out, said = run(str(own), "--", "sh", "-c", "kill -9 $$")
            assert code == 137, (code, out, said)
            terminal = Terminal(environment, "exec", str(own), "-it", "--", "sh", size=(43, 132))
            terminal.ask("busybox stty size", "43 132")
            terminal.resize(24, 80)
            terminal.ask("busybox stty size", "24 80")
            # A key typed while the shell edits a line is no interrupt, so the command has to be running.
            terminal.ask("echo sleeps $((6 * 6)); busybox sleep 600", "sleeps 36")
            terminal.type("\x03")
            terminal.ask("echo again $((6 * 7))", "again 42")
            terminal.type("exit 5\n")
            assert terminal.end() == 5
        assert len(fleet.berth("events", "--kind", "shell-ended").splitlines()) >= 10


class Registry(http.server.BaseHTTPRequestHandler):
    """It knows no image."""

    def answer(self):
        body = json.dumps({"errors": [{"code": "DENIED", "message": "the licence of this image is over"}]}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = answer

    def log_message(self, *words):
        pass


def an_image_that_cannot_be_pulled_is_told(cluster, kubeconfig):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as registry, OnKubelets(
            cluster, kubeconfig, flags=["--pull-wait", "15s"]) as fleet:  # longer than the network of a pod takes
        threading.Thread(target=registry.serve_forever, daemon=True).start()
        image = f"127.0.0.1:{registry.server_port}/train:1"
        job = fleet.submit("--gpus", "1", "--", "true", image=image)
        wait_job(fleet, job, outcome="start-failed")
        said = fleet.berth("job", str(job))
        assert "its container does not start: " in said and "403 Forbidden" in said, said
        fleet.make(fleet.pod("bad", containers=fleet.container({GPU: 1}, "true", image=image)))
        eventually(lambda: f"it is bound: {fleet.states()}", lambda: fleet.bound("bad"))
        whole = fleet.submit("--tasks", "2", "--gpus", "8", "--", *STAY)
        said = fleet.wait_event("bad", "StartGivenUp")
        assert "403 Forbidden" in said, said
        wait_running(fleet, whole, 2)
        assert not fleet.pods("bad"), fleet.states()
        registry.shutdown()


CASES = [a_pod_runs_and_its_exit_and_its_log_are_told, a_gang_runs_on_two_kubelets, devices_of_each_kind_are_given,
         a_borrower_saves_gives_back_and_goes_on, a_device_that_is_taken_away_is_not_used,
         adapters_of_the_network_limit_what_starts, a_kubelet_that_stops_and_starts_keeps_its_pods,
         an_image_that_cannot_be_pulled_is_told, a_gang_that_a_device_plugin_refuses_starts_elsewhere,
         a_gang_whose_devices_cannot_be_aligned_starts_elsewhere, a_shell_opens_in_a_pod_where_the_chart_gives_the_right]


def helm():
    """The program, or an empty text."""
    return subprocess.run([os.path.join(HERE, "helm", "build"), "--where"], capture_output=True, text=True, check=False).stdout.strip()


def skipped():
    """Why this cannot be run here, or an empty text."""
    if why := alone.lacking():
        return why
    if not helm():
        return "helm is not built; `tests/kubernetes/helm/build` or `./test --kubernetes` does it"
    for found, why in (programs(), node_programs()):
        if found is None:
            return f"{why}; `tests/node/build` or `./test --kubernetes` builds it"
    return ""


if __name__ == "__main__":
    if alone.STAGE not in os.environ and (reason := skipped()):
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    alone.enter()
    HELM = helm()
    sys.exit(main(CASES, NodeCluster))

#!/usr/bin/env python3
"""Jobs that are submitted to berth itself and run as pods: what is made, what becomes of it, and that it is made once."""
import base64
import json
import os
import re
import signal
import subprocess
import sys
import time

from cluster import Refused, eventually, node_of
from fleet import DEPLOY, Fleet, berth_binary, main

SPACE = "berth-jobs"
PODS, SERVICES = f"/api/v1/namespaces/{SPACE}/pods", f"/api/v1/namespaces/{SPACE}/services"


def submit(fleet, *words, image="example.com/train:1", code=0):
    """Submits a job, and returns its number."""
    said = fleet.berth("submit", "--queue", "red", "--image", image, *words, code=code)
    return int(next(word for word in said.split() if word.isdigit())) if code == 0 else said


def own_pods(fleet, job):
    return [pod for pod in fleet.cluster.items(f"{PODS}?labelSelector=berth.dev/job={job}")
            if pod["metadata"]["annotations"]["berth.dev/log"] == log_of(fleet)]


def log_of(fleet):
    with open(os.path.join(fleet.server.data, "machine")) as file:
        return file.read().strip()


def services(fleet, job):
    return fleet.cluster.items(f"{SERVICES}?labelSelector=berth.dev/job={job}")


def env_of(pod):
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}


def wait_running(fleet, job, count):
    def holds():
        pods = own_pods(fleet, job)
        return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods) and sorted(
            pods, key=lambda pod: int(pod["metadata"]["labels"]["berth.dev/task"]))
    return eventually(lambda: f"{count} pods of job {job} run: {[pod['status'] for pod in own_pods(fleet, job)]}", holds)


def job_of(fleet, job):
    return fleet.server.ask("GET", f"/v1/jobs/{job}")


def wait_job(fleet, job, **want):
    def holds():
        seen = job_of(fleet, job)
        return all(seen.get(key) == value for key, value in want.items()) and seen
    return eventually(lambda: f"job {job} is {want}: {job_of(fleet, job)}", holds)


def end(fleet, pod, code=0):
    """The container ends, as a kubelet would say it."""
    state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    fleet.cluster.ask("PATCH", f"{PODS}/{pod['metadata']['name']}/status", {"status": {
        "phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [
            {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}]}},
        "application/strategic-merge-patch+json")


class Own(Fleet):
    """A case whose pods in the namespace of jobs go with it."""

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for pod in self.cluster.pods(SPACE):
                self.cluster.delete(f"{PODS}/{pod['metadata']['name']}", 0)


def a_job_is_one_pod_that_runs_and_succeeds(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        node, = fleet.add_nodes(1)
        job = submit(fleet, "--name", "train", "--gpus", "2", "--cpus", "4", "--memory", "8Gi", "--env", "PRICE=$5 $(HOME)",
                     "--", "python3", "train.py", "--tag", "$(BERTH_JOB)")
        pod, = wait_running(fleet, job, 1)
        main_container, metadata = pod["spec"]["containers"][0], pod["metadata"]
        assert node_of(pod) == node and metadata["name"].startswith(f"berth-{job}-1-0-1-"), metadata
        assert main_container["image"] == "example.com/train:1", main_container
        assert main_container["command"] == ["python3", "train.py", "--tag", "$$(BERTH_JOB)"], main_container["command"]
        assert env_of(pod)["PRICE"] == "$$5 $$(HOME)" and env_of(pod)["BERTH_JOB"] == str(job), env_of(pod)
        assert "CUDA_VISIBLE_DEVICES" not in env_of(pod)
        assert main_container["resources"]["limits"] == {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"}
        assert metadata["labels"]["berth.dev/queue"] == "red" and metadata["annotations"]["berth.dev/job-name"] == "train"
        assert pod["spec"]["automountServiceAccountToken"] is False and "volumeMounts" in main_container
        assert not [volume for volume in pod["spec"]["volumes"] if "projected" in volume], pod["spec"]["volumes"]
        assert not services(fleet, job), "one task needs no names"
        wait_job(fleet, job, phase="running")
        end(fleet, pod)
        wait_job(fleet, job, outcome="succeeded")
        assert [one["name"] for one in fleet.server.all("/v1/jobs?finished=true")] == ["train"], "its pod is no other job"


def what_a_job_mounts_is_in_its_pod_and_its_image_is_the_queue_s(cluster, kubeconfig):
    queue = {"volumes": {"data": {"claim": "data", "read_only": True}, "scratch": {"claim": "scratch"}},
             "secrets": {"hf": {"kubernetes": "hf-secret"}}, "default_image": "example.com/base:1"}
    with Own(cluster, kubeconfig, config={"queues": {"red": queue, "blue": {}}}) as fleet:
        fleet.add_nodes(1)
        said = fleet.berth("submit", "--queue", "red", "--gpus", "1", "--mount", "data:/data", "--mount", "scratch:/work", "--secret",
                           "hf", "--shm", "64MiB", "--checkpoint-volume", "scratch", "--workdir", "/work", "--", "train")
        job = int(next(word for word in said.split() if word.isdigit()))
        pod, = wait_running(fleet, job, 1)
        container = pod["spec"]["containers"][0]
        mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
        volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
        assert container["image"] == "example.com/base:1" and container["workingDir"] == "/work", container
        assert env_of(pod)["BERTH_CHECKPOINT_DIR"] == "/berth/checkpoint", env_of(pod)
        assert mounts["/data"]["readOnly"], mounts
        assert re.fullmatch(f"job-[0-9a-f]{{8}}-{job}/checkpoint", mounts["/berth/checkpoint"]["subPath"]), mounts
        assert mounts["/work"]["name"] == mounts["/berth/checkpoint"]["name"], mounts
        assert volumes[mounts["/work"]["name"]]["persistentVolumeClaim"]["claimName"] == "scratch", volumes
        assert volumes[mounts["/berth/secrets/hf"]["name"]]["secret"]["secretName"] == "hf-secret", volumes
        assert volumes["shm"]["emptyDir"]["sizeLimit"] == "64Mi", volumes
        refused = fleet.berth("submit", "--queue", "blue", "--image", "x", "--mount", "data:/data", "--", "train", code=None)
        assert "queue 'blue' has no volume 'data'" in refused, refused
        end(fleet, pod)
        wait_job(fleet, job, outcome="succeeded")


def a_gang_finds_itself_by_name(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(2, gpus=4)
        job = submit(fleet, "--tasks", "2", "--gpus", "4", "--", "train")
        pods = wait_running(fleet, job, 2)
        service, = eventually("the Service of the gang", lambda: services(fleet, job))
        name = service["metadata"]["name"]
        assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"], service["spec"]
        for number, pod in enumerate(pods):
            env = env_of(pod)
            assert env["MASTER_ADDR"] == f"task-0.{name}.{SPACE}.svc" and env["WORLD_SIZE"] == "2", env
            assert env["RANK"] == str(number) and pod["spec"]["hostname"] == f"task-{number}", env
            assert pod["spec"]["subdomain"] == name
            assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert len({node_of(pod) for pod in pods}) == 2
        owner, = service["metadata"]["ownerReferences"]
        assert owner["uid"] == pods[0]["metadata"]["uid"]
        cluster.delete(f"{PODS}/{pods[0]['metadata']['name']}", 0)
        eventually("the Service goes with the pod of task 0", lambda: not services(fleet, job))


def torchrun_is_told_the_name_of_task_0(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(2, gpus=4)
        job = submit(fleet, "--tasks", "2", "--gpus", "4", "--launch", "torchrun", "--", "train.py")
        pods = wait_running(fleet, job, 2)
        for number, pod in enumerate(pods):
            command = pod["spec"]["containers"][0]["command"]
            assert command[0] == "torchrun" and command[command.index("--node_rank") + 1] == str(number), command
            assert command[command.index("--master_addr") + 1] == env_of(pod)["MASTER_ADDR"], command


def a_failure_is_told_with_its_code(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        job = submit(fleet, "--gpus", "1", "--", "train")
        pod, = wait_running(fleet, job, 1)
        end(fleet, pod, 17)
        seen = wait_job(fleet, job, outcome="failed")
        assert seen["code"] == 17, seen
        again = submit(fleet, "--gpus", "8", "--", "train")
        wait_running(fleet, again, 1)  # the GPUs are free


def a_cancelled_job_s_pods_are_deleted(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        job = submit(fleet, "--tasks", "3", "--gpus", "2", "--", "train")
        wait_running(fleet, job, 3)
        fleet.berth("cancel", str(job))
        eventually("the pods are gone", lambda: not own_pods(fleet, job))
        wait_job(fleet, job, outcome="cancelled")


def a_pod_that_somebody_deletes_ends_its_task(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        job = submit(fleet, "--gpus", "1", "--", "train")
        pod, = wait_running(fleet, job, 1)
        wait_job(fleet, job, phase="running")
        cluster.delete(f"{PODS}/{pod['metadata']['name']}", 0)
        wait_job(fleet, job, phase="finished")


def preemption_gives_the_places_to_the_stronger(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        weak = submit(fleet, "--gpus", "8", "--priority", "dev", "--", "train")
        wait_running(fleet, weak, 1)
        wait_job(fleet, weak, phase="running")
        strong = submit(fleet, "--gpus", "8", "--priority", "production", "--", "train")
        pod, = wait_running(fleet, strong, 1)
        fleet.check_room()
        end(fleet, pod)
        second, = wait_running(fleet, weak, 1)
        assert second["metadata"]["labels"]["berth.dev/attempt"] == "2", second["metadata"]


def what_cannot_be_a_pod_is_refused_at_once(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        said = fleet.berth("submit", "--queue", "red", "--gpus", "1", "--", "train", code=None)
        assert "--image" in said, said
        said = submit(fleet, "--gpus", "0.5", "--", "train", code=None)
        assert "whole GPUs" in said, said


def what_the_api_server_refuses_is_told(cluster, kubeconfig):
    """A quota of the namespace that leaves no room: the job says so, in the words of the API server."""
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        quotas = f"/api/v1/namespaces/{SPACE}/resourcequotas"
        cluster.make(quotas, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
        try:
            eventually("the quota holds", lambda: (cluster.get(quotas + "/none").get("status") or {}).get("hard"))
            job = submit(fleet, "--gpus", "1", "--", "train")
            seen = wait_job(fleet, job, phase="finished")
            assert "exceeded quota" in json.dumps(seen), seen
        finally:
            cluster.delete(quotas + "/none")


def hostile_words_break_no_name(cluster, kubeconfig):
    with Own(cluster, kubeconfig, config={"queues": {"red": {}, "blue": {}, "x" * 60: {"queues": {"y" * 60: {}}}}}) as fleet:
        fleet.add_nodes(1)
        long_queue = "x" * 60 + "/" + "y" * 60
        said = fleet.berth("submit", "--queue", long_queue, "--image", "a:1", "--gpus", "1", "--env", "A=\u202e'\"$$(X)`rm`",
                           "--", "sh", "-c", "echo '\u001b[31m' \"$HOME\" $(id)")
        pod, = wait_running(fleet, int(next(word for word in said.split() if word.isdigit())), 1)
        assert "berth.dev/queue" not in pod["metadata"]["labels"]
        assert pod["metadata"]["annotations"]["berth.dev/queue"] == long_queue
        assert env_of(pod)["A"] == "\u202e'\"$$$$(X)`rm`", env_of(pod)


def another_s_pod_of_this_name_is_not_taken(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        first = submit(fleet, "--gpus", "1", "--", "train")
        pod, = wait_running(fleet, first, 1)
        squatter = pod["metadata"]["name"].replace(f"berth-{first}-", f"berth-{first + 1}-")
        cluster.make(PODS, {"metadata": {"name": squatter}, "spec": {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "main", "image": "x", "securityContext": {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}})
        second = submit(fleet, "--gpus", "1", "--", "train")
        assert second == first + 1
        seen = wait_job(fleet, second, phase="finished")
        assert "not berth's" in json.dumps(seen), seen


def killed_at_any_moment_it_makes_each_pod_once(cluster, kubeconfig):
    """The server is killed in the middle of many starts, several times; each task has one pod in all that time."""
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(4)
        made = {}

        def look():
            for pod in cluster.pods(SPACE):
                key = pod["metadata"]["annotations"].get("berth.dev/task")
                made.setdefault(key, set()).add(pod["metadata"]["uid"])
        jobs = []
        for number in range(4):
            jobs += [submit(fleet, "--tasks", "4", "--gpus", "1", "--", "train") for _ in range(2)]
            time.sleep(0.02 * number)  # allowed: each kill comes a little later
            fleet.server.kill()
            look()
            fleet.start()
        for job in jobs:
            wait_running(fleet, job, 4)
            wait_job(fleet, job, phase="running")
        look()
        assert len(made) == 32 and all(len(uids) == 1 for uids in made.values()), made
        attempts = {pod["metadata"]["labels"]["berth.dev/attempt"] for job in jobs for pod in own_pods(fleet, job)}
        assert attempts == {"1"}, attempts
        fleet.check_room()


def the_api_server_may_die_in_the_middle_of_starts(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(4)
        jobs = [submit(fleet, "--tasks", "8", "--gpus", "1", "--", "train") for _ in range(2)]
        cluster.end("kube-apiserver", signal.SIGKILL)
        jobs += [submit(fleet, "--tasks", "8", "--gpus", "1", "--", "train") for _ in range(2)]
        cluster.start_api_server()
        for job in jobs:
            pods = wait_running(fleet, job, 8)
            wait_job(fleet, job, phase="running")
            assert {pod["metadata"]["labels"]["berth.dev/attempt"] for pod in pods} == {"1"}, pods
        fleet.check_room()


def the_policy_lets_berth_make_pods_and_nobody_forge_them(cluster, kubeconfig):
    with Own(cluster, kubeconfig) as fleet:
        fleet.add_nodes(1)
        policy = os.path.join(DEPLOY, "policy.yaml")
        cluster.kubectl("apply", "-f", policy)
        try:
            forged = {"metadata": {"generateName": "forged-", "annotations": {"berth.dev/task": "1/1/0/1"}}, "spec": {
                "schedulerName": "berth", "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "main", "image": "x", "securityContext": {
                    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}}

            def refused():
                try:
                    cluster.make(PODS, forged)
                    return False
                except Refused as refusal:
                    return "berth's own" in str(refusal)  # the namespace of jobs has the label of the policy
            eventually("the policy holds", refused, 30)
            job = submit(fleet, "--gpus", "1", "--", "train")
            wait_running(fleet, job, 1)
        finally:
            cluster.kubectl("delete", "-f", policy)


def a_pod_reports_its_saves_and_may_nothing_else(cluster, kubeconfig):
    """By the file that it has, with curl and with berth, for its own job as long as that runs. The token stands in no pod, event or
    log, and goes with the pod."""
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/roles/berth-jobs"
    whole = cluster.get(role)["rules"]
    cluster.patch(role, {"rules": [*whole, {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]})
    try:
        with Own(cluster, kubeconfig, flags=["--url", "https://berth.example.com"]) as fleet:
            fleet.add_nodes(1)
            first, second = (submit(fleet, "--gpus", "1", "--", "train") for _ in range(2))
            pod = wait_running(fleet, first, 1)[0]
            path = f"/api/v1/namespaces/{SPACE}/secrets/" + next(
                one for one in pod["spec"]["volumes"] if one["name"] == "berth-saves")["secret"]["secretName"]
            token = base64.b64decode(cluster.get(path)["data"]["token"]).decode()
            url, env = f"http://127.0.0.1:{fleet.server.port}", env_of(pod)
            assert env["BERTH_SAVE_SERVER"] == "https://berth.example.com" and env["BERTH_SAVE_TOKEN_FILE"] == "/berth/saves/token", env

            def curl(target, *words):
                ran = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Authorization: Bearer " + token,
                                      *words, url + target], capture_output=True, text=True, check=True)
                return int(ran.stdout)

            def save(job, step):
                return curl(f"/v1/jobs/{job}/checkpoint", "-H", "Content-Type: application/json", "-d", json.dumps({"attempt": 1, "step": step}))
            assert save(first, 7) == 200
            eventually(lambda: f"step 7 is known: {job_of(fleet, first)}", lambda: '"step": 7' in json.dumps(job_of(fleet, first)))
            assert save(second, 7) == 404
            for target in (f"/v1/jobs/{first}", f"/v1/jobs/{second}", "/v1/jobs", "/v1/nodes", "/v1/prices", "/v1/identity", "/v1/config"):
                assert curl(target) in (403, 404), target
            file = os.path.join(fleet.directory, "token")
            with open(file, "w") as mounted:
                mounted.write(token)
            ran = subprocess.run([berth_binary(), "checkpoint-done", "--step", "8"], capture_output=True, text=True, check=False, env={
                "PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "10.0.0.1", "BERTH_JOB": env["BERTH_JOB"],
                "BERTH_ATTEMPT": env["BERTH_ATTEMPT"], "BERTH_SAVE_SERVER": url, "BERTH_SAVE_TOKEN_FILE": file})
            assert ran.returncode == 0 and "step 8 acknowledged" in ran.stdout, ran
            told = [json.dumps(own_pods(fleet, first)), str(cluster.events_of(SPACE, pod["metadata"]["name"])), fleet.server.tail(),
                    fleet.berth("snapshot"), fleet.berth("job", str(first), "-o", "json"), fleet.berth("events", code=None)]
            assert not [text for text in told if token.rsplit("-", 1)[1] in text], told
            fleet.berth("cancel", str(first))
            eventually("its token has ended", lambda: save(first, 9) == 401)
            eventually("its Secret goes with the pod", lambda: cluster.get(path) is None)
    finally:
        cluster.patch(role, {"rules": whole})


if __name__ == "__main__":
    sys.exit(main([a_job_is_one_pod_that_runs_and_succeeds, what_a_job_mounts_is_in_its_pod_and_its_image_is_the_queue_s,
                   a_gang_finds_itself_by_name, torchrun_is_told_the_name_of_task_0,
                   a_failure_is_told_with_its_code, a_cancelled_job_s_pods_are_deleted, a_pod_that_somebody_deletes_ends_its_task,
                   preemption_gives_the_places_to_the_stronger, what_cannot_be_a_pod_is_refused_at_once,
                   what_the_api_server_refuses_is_told, hostile_words_break_no_name, another_s_pod_of_this_name_is_not_taken,
                   killed_at_any_moment_it_makes_each_pod_once, the_api_server_may_die_in_the_middle_of_starts,
                   the_policy_lets_berth_make_pods_and_nobody_forge_them, a_pod_reports_its_saves_and_may_nothing_else]))

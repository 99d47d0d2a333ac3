#!/usr/bin/env python3
"""Volumes, secrets and checkpoints of jobs on a machine (docs/data.md): what a task finds at its paths, what it cannot do with it,
what is refused, and that the value of a secret is nowhere but in the task."""
import hashlib
import os
import subprocess
import sys

from hostile_test import discard, ended
from server import Problem, Server, berth_binary, for_jobs, fresh_directory
import tally

CANARY = "canary-5d41402abc4b2a76b9719d911017c592"

CONFIG = """cluster: test
volumes:
  scratch: {{host_path: {at}/scratch}}
secrets:
  hf-token: {{files: {{token: {at}/hf-token}}}}
  gone: {{files: {{token: {at}/no-such-file}}}}
queues:
  research:
    volumes:
      data: {{host_path: {at}/set, read_only: true}}
      away: {{host_path: {at}/no-such-directory}}
      linked: {{host_path: {at}/link}}
      claim: {{claim: scratch}}
  ads: {{}}
"""


class WithVolumes(Server):
    def __init__(self, uid=None):
        super().__init__(fresh_directory(), gpus="4xH100-SXM5-80GB")
        os.chmod(self.directory, 0o711)
        for name, mode in (("scratch", 0o1777), ("set", 0o755), ("private", 0o777)):
            os.makedirs(self.at(name))
            os.chmod(self.at(name), mode)
        os.symlink(self.at("set"), self.at("link"))
        self.write("set/file", "forty-two\n")
        self.write("hf-token", CANARY)
        os.chmod(self.at("hf-token"), 0o600)
        self.config = self.at("cluster.yaml")
        self.write("cluster.yaml", CONFIG.format(at=self.directory))
        if uid is not None:
            self.run_as(uid)
        assert self.start(), self.tail()

    def at(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.at(name), "w") as file:
            file.write(text)

    def submit(self, command, queue="research", **more):
        body = {"queue": queue, "user": "ann", "gpus": 1, "cpus": 0.1, "memory": "256MiB", "command": ["bash", "-c", command], **more}
        return self.ask("POST", "/v1/jobs", body)["id"]

    def output(self, job, stream="stdout"):
        folder = os.path.join(self.data, "jobs", str(job), "attempt-1", "task-0")
        files = sorted(name for name in os.listdir(folder) if name.startswith(stream))
        return "".join(open(os.path.join(folder, name), errors="replace").read() for name in files)

    def said(self, command, **more):
        job = self.submit(command, **more)
        seen = ended(self, job)
        assert seen["outcome"] == "succeeded", (seen, self.output(job, "stderr"))
        return self.output(job).strip()

    def message(self, command="true", **more):
        return ended(self, self.submit(command, **more))["past"][-1]["message"]

    def refusal(self, **more):
        try:
            self.submit("true", **more)
        except Problem as problem:
            return str(problem)
        return "accepted"

    def berth(self, *words):
        environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{self.port}", "BERTH_TOKEN": self.token}
        return subprocess.run([berth_binary(), *words], capture_output=True, text=True, check=False, env=environment)


def a_job_reads_a_volume_and_writes_to_one_that_is_not_read_only():
    server = WithVolumes()
    said = server.said("cat /sets/mine/file; cp /sets/mine/file /scratch/copy && stat -c %u /scratch/copy; ls /berth 2>&1 || true",
                       mounts=["data:/sets/mine:ro", {"name": "scratch", "path": "/scratch"}])
    assert said.startswith("forty-two\n5"), said
    assert open(server.at("scratch/copy")).read() == "forty-two\n"
    assert not os.path.exists("/sets") and not os.path.exists("/scratch"), "a place was made on the machine"
    assert server.said("cd /scratch; pwd", mounts=["scratch:/scratch"], workdir="/scratch") == "/scratch"
    discard(server)


def a_read_only_volume_cannot_be_written():
    server = WithVolumes()
    os.chmod(server.at("set"), 0o777)
    assert "Read-only" in server.said("touch /d/x 2>&1 || true", mounts=["data:/d"])  # as the configuration has it
    assert "Read-only" in server.said("touch /d/x 2>&1 || true", mounts=["scratch:/d:ro"])  # as the job has it
    assert not os.path.exists(server.at("set/x")) and not os.path.exists(server.at("scratch/x"))
    discard(server)


def a_link_leads_out_of_no_volume():
    server = WithVolumes()
    assert server.said("ln -s " + server.at("private") + " /s/out; echo made", mounts=["scratch:/s"]) == "made"
    message = server.message(checkpoint={"volume": "scratch", "path": "out/x"})
    assert "a symbolic link is on the way" in message and "'out'" in message, message
    assert os.listdir(server.at("private")) == []
    message = server.message(mounts=["linked:/d"])
    assert "a symbolic link is on the way" in message and server.at("link") in message, message
    refused = server.refusal(checkpoint={"volume": "scratch", "path": "../private"})
    assert "is not a path within the volume" in refused, refused
    discard(server)


def what_a_queue_does_not_have_is_refused_by_name():
    server = WithVolumes()
    refused = server.refusal(mounts=["dat:/d"])
    assert "mounts[0]: queue 'research' has no volume 'dat'; did you mean 'data'?" in refused, refused
    refused = server.refusal(queue="ads", mounts=["data:/d"], secrets=["nope"])
    assert "queue 'ads' has no volume 'data'; it has scratch" in refused and "no secret 'nope'" in refused, refused
    assert "which only Kubernetes has" in server.refusal(mounts=["claim:/c"])
    message = server.message(mounts=["away:/d"])
    assert "no-such-directory: No such file" in message, message
    message = server.message(secrets=["gone"])
    assert "no-such-file: No such file" in message and CANARY not in message, message
    refused = server.berth("submit", "--queue", "research", "--mount", "dat:/d", "--", "true")
    assert refused.returncode != 0 and "did you mean 'data'?" in refused.stderr, refused.stderr
    server.write("job.yaml", "queue: ads\ncommand: [x]\nmounts: ['data:/d']\ncheckpoint: {volume: nope}\n")
    checked = server.berth("check", server.config, server.at("job.yaml"))
    assert f"{server.at('job.yaml')}:3:10: mounts[0]: queue 'ads' has no volume 'data'" in checked.stdout, checked.stdout
    assert "4:22: checkpoint.volume: queue 'ads' has no volume 'nope'" in checked.stdout, checked.stdout
    discard(server)


def a_checkpoint_and_outputs_lie_in_a_volume_and_a_save_there_is_acknowledged():
    server = WithVolumes()
    program = for_jobs(server.directory, berth_binary())
    job = server.submit("echo w > $BERTH_CHECKPOINT_DIR/weights; echo o > $BERTH_OUTPUT_DIR/out; "
                        f"{program} checkpoint-done --step 12; echo $BERTH_CHECKPOINT_DIR",
                        checkpoint={"on_signal": True, "volume": "scratch"}, outputs={"volume": "scratch", "path": "runs/a"})
    seen = ended(server, job)
    assert seen["outcome"] == "succeeded", (seen, server.output(job, "stderr"))
    assert server.output(job).split("\n")[1] == "/berth/checkpoint", server.output(job)
    assert open(server.at(f"scratch/job-{job}/weights")).read() == "w\n"
    assert open(server.at("scratch/runs/a/out")).read() == "o\n"
    assert server.ask("GET", f"/v1/jobs/{job}")["checkpoint"]["step"] == 12
    shown = server.berth("job", str(job)).stdout
    assert "volume scratch has BERTH_CHECKPOINT_DIR" in shown and "BERTH_OUTPUT_DIR in runs/a" in shown, shown
    discard(server)


def a_secret_is_in_the_task_and_nowhere_else():
    server = WithVolumes()
    job = server.submit("sha256sum < /berth/secrets/hf-token/token; stat -c %a /berth/secrets/hf-token/token; env; "
                        "cat /proc/self/mountinfo | grep secrets; sleep 0.5",
                        secrets=["hf-token"], shm="8MiB")
    seen = ended(server, job)
    assert seen["outcome"] == "succeeded", (seen, server.output(job, "stderr"))
    said = server.output(job)
    assert hashlib.sha256(CANARY.encode()).hexdigest() in said and "\n400\n" in said, said
    shown = [str(server.ask("GET", path)) for path in ("/v1/snapshot", f"/v1/jobs/{job}", "/v1/config")] + [str(server.all_events())]
    for words in (("why", str(job)), ("job", str(job), "-o", "json"), ("config",), ("events",), ("audit", "-o", "json")):
        ran = server.berth(*words)
        assert ran.returncode == 0 and ran.stdout, (words, ran)
        shown.append(ran.stdout)
    assert "secret hf-token in /berth/secrets/hf-token" in server.berth("job", str(job)).stdout
    assert not any(CANARY in one for one in shown)
    server.stop()
    looked_at = 0
    for folder, _, names in os.walk(server.directory):
        for name in names:
            path = os.path.join(folder, name)
            if path == server.at("hf-token") or os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                assert CANARY.encode() not in file.read(), path
            looked_at += 1
    assert looked_at > 10, looked_at
    assert CANARY in open(server.at("hf-token")).read()
    discard(server)


def a_server_that_is_not_root_refuses_what_it_cannot_mount():
    server = WithVolumes(uid=1)
    for more in ({"mounts": ["data:/d"]}, {"secrets": ["hf-token"]}, {"shm": "8MiB"}, {"checkpoint": {"volume": "scratch"}}):
        refused = server.refusal(**more)
        assert "need a server that is root" in refused, refused
    server.said("true")
    discard(server)


def main():
    if os.geteuid() != 0:
        print("SKIPPED: only root can mount")
        sys.exit(77)
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        print("SKIPPED: no mount namespace can be made here")
        sys.exit(77)
    sys.exit(tally.run([case for name, case in globals().items() if callable(case) and name.split("_")[0] in ("a", "what")]))


if __name__ == "__main__":
    main()

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
    def __init__(self, uid=None, flags=()):
        super().__init__(fresh_directory(), gpus="4xH100-SXM5-80GB", flags=flags)
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

    def directory_of(self, job, volume="scratch"):
        found = [name for name in os.listdir(self.at(volume)) if name.startswith("job-") and name.endswith(f"-{job}")]
        assert len(found) == 1, (job, os.listdir(self.at(volume)))
        return os.path.join(self.at(volume), found[0])

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


def a_volume_below_a_closed_directory_is_reached_through_its_mount_alone():
    server = WithVolumes()
    os.makedirs(server.at("closed/set"))
    os.chmod(server.at("closed/set"), 0o777)
    os.chmod(server.at("closed"), 0o700)
    os.chmod(server.at("set"), 0o777)
    assert server.said(f"touch {server.at('set')}/by-path && echo open") == "open"  # read_only binds at the mount alone
    server.write("new.yaml", CONFIG.format(at=server.directory).replace(
        f"data: {{host_path: {server.at('set')}", f"data: {{host_path: {server.at('closed/set')}"))
    warning = "volume 'data' of queue 'research': every job reaches its host_path"
    assert any(warning in one for one in server.ask("GET", "/v1/cluster")["warnings"])
    applied = server.berth("apply", "-f", server.at("new.yaml"))
    assert applied.returncode == 0, applied
    warnings = server.ask("GET", "/v1/cluster")["warnings"]
    assert not any(warning in one for one in warnings) and any("volume 'away'" in one for one in warnings), warnings
    at = server.at("closed/set")
    assert "Permission denied" in server.said(f"touch {at}/x 2>&1 || true", mounts=["data:/d"])
    assert "Read-only" in server.said("touch /d/x 2>&1 || true", mounts=["data:/d"])
    assert os.listdir(at) == []
    discard(server)


def a_directory_that_another_user_made_in_advance_gets_no_checkpoint():
    server = WithVolumes()
    first = server.submit("touch $BERTH_CHECKPOINT_DIR/x", checkpoint={"volume": "scratch"})
    assert ended(server, first)["outcome"] == "succeeded"
    name = os.path.basename(server.directory_of(first)).rsplit("-", 1)[0]
    made = server.said(f"mkdir -m 777 /s/{name}-{first + 2}; echo made", mounts=["scratch:/s"], user="eve")
    assert made == "made", made
    message = server.message(checkpoint={"volume": "scratch"})
    assert "belongs to uid" in message and "name another path" in message, message
    assert os.listdir(server.at(f"scratch/{name}-{first + 2}")) == []
    discard(server)


def an_acknowledgement_of_an_earlier_job_counts_for_no_other():
    server = WithVolumes()
    program = for_jobs(server.directory, berth_binary())
    place = {"on_signal": True, "volume": "scratch", "path": "runs/b"}
    first = server.submit(f"{program} checkpoint-done --step 12", checkpoint=place)
    assert ended(server, first)["checkpoint"]["step"] == 12
    second = server.submit("cat $BERTH_CHECKPOINT_DIR/ack.json; sleep 1", checkpoint=place)
    seen = ended(server, second)
    assert seen["outcome"] == "succeeded" and "12" in server.output(second), seen
    assert not (seen.get("checkpoint") or {}).get("step"), seen
    discard(server)


def a_job_whose_secret_has_lost_its_files_is_not_started_without_it():
    server = WithVolumes()
    job = server.submit("true", secrets=["hf-token"], hold=True)
    server.write("new.yaml", CONFIG.format(at=server.directory).replace(
        f"hf-token: {{files: {{token: {server.at('hf-token')}}}}}", "hf-token: {kubernetes: hf}"))
    applied = server.berth("apply", "-f", server.at("new.yaml"))
    assert applied.returncode == 0, applied
    assert server.berth("release", str(job)).returncode == 0
    message = ended(server, job)["past"][-1]["message"]
    assert message == "task 0: secret 'hf-token' has no files: for a machine any more", message
    discard(server)


def a_server_that_runs_all_users_as_one_account_refuses_secrets():
    server = WithVolumes(flags=["--task-user", "daemon"])
    refused = server.refusal(secrets=["hf-token"])
    assert "several users as one account (--task-user)" in refused, refused
    assert server.said("cat /d/file", mounts=["data:/d"]) == "forty-two"
    discard(server)


def a_link_leads_out_of_no_volume():
    server = WithVolumes()
    assert server.said("ln -s " + server.at("private") + " /s/out; echo made", mounts=["scratch:/s"]) == "made"
    message = server.message(checkpoint={"volume": "scratch", "path": "out/x"})
    assert "a symbolic link is on the way" in message and "'out'" in message, message
    assert os.listdir(server.at("private")) == []
    message = server.message(mounts=["linked:/d"])
    assert message.startswith("task 0: volume 'linked': ") and "a symbolic link is on the way" in message, message
    assert server.directory not in message, message
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
    assert message == "task 0: volume 'away': open its directory on this machine: No such file or directory", message
    message = server.message(secrets=["gone"])
    assert message == "task 0: secret 'gone': open the source of 'token' on this machine: No such file or directory", message
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
    directory = server.directory_of(job)
    assert open(os.path.join(directory, "checkpoint/weights")).read() == "w\n"
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
    sys.exit(tally.run([case for name, case in globals().items() if callable(case) and name.split("_")[0] in ("a", "an", "what")]))


if __name__ == "__main__":
    main()

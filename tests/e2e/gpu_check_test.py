#!/usr/bin/env python3
"""No job starts on a dirty GPU: a server on a machine whose driver (tests/fake_nvml) shows a process that is left on a GPU, one
of a task that is over, and one GPU that does not answer. What is fenced, why, and how an operator lifts it."""
import json
import os
import shutil
import subprocess
import sys
import traceback

from patience import eventually, stretched
from server import ROOT, Server, berth_binary, fresh_directory

LIBRARY = os.environ.get("FAKE_NVML") or os.path.join(ROOT, "build", "dev", "tests", "fake_nvml", "libfake_nvml.so")


class World:
    def __init__(self):
        self.directory = fresh_directory()
        self.settings = os.path.join(self.directory, "nvml")
        self.environment = {"BERTH_NVML_PATH": LIBRARY, "BERTH_FAKE_NVML": self.settings}
        self.server = Server(self.directory, gpus=None, flags=["--gpu-patience-ms", "1500"])
        self.left = []
        self.driver()
        self.start()
        self.server.ask("PUT", "/v1/config", {"cluster": "clean", "queues": {"a": {}}})

    def start(self):
        assert self.server.start(self.environment), self.server.tail()

    def driver(self, *settings):
        with open(self.settings + ".new", "w") as file:
            file.write("\n".join(["count=2", *settings]) + "\n")
        os.rename(self.settings + ".new", self.settings)

    def process(self, environment=None):
        # allowed: it is what is left on a GPU
        process = subprocess.Popen(["sleep", "600"], env=environment)
        self.left.append(process)
        return process

    def berth(self, *words):
        done = subprocess.run([berth_binary(), *words, "--server", f"http://127.0.0.1:{self.server.port}", "--token-file",
                               os.path.join(self.server.data, "token")], capture_output=True, text=True, timeout=stretched(30))
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def submit(self, gpus, command=("sleep", "600")):
        return self.server.ask("POST", "/v1/jobs", {"queue": "a", "gpus": gpus, "cpus": "0.1", "memory": "16MiB",
                                                    "command": list(command)})["id"]

    def wait_running(self, job):
        """The check is over, and the processes of the job run."""
        def runs():
            tasks = self.server.job(job)["tasks"]
            return tasks and all(task["phase"] == "running" for task in tasks)
        eventually(lambda: f"job {job} runs, but it is {self.server.job(job)}, on {[self.gpu(i) for i in (0, 1)]}", runs)

    def cancel(self, *jobs):
        for job in jobs:
            self.server.ask("DELETE", f"/v1/jobs/{job}")
            self.server.wait_phase(job, "finished")

    def gpu(self, index):
        return self.server.ask("GET", "/v1/nodes/n1")["gpus"][index]

    def clean(self):
        """Whatever a rule has left is gone."""
        self.driver()
        self.cancel(*(job["id"] for job in self.server.all("/v1/jobs")))
        for index in (0, 1):
            self.server.ask("POST", f"/v1/nodes/n1/uncordon?gpu={index}")

    def end(self):
        for process in self.left:
            process.kill()
            process.wait()
        for job in self.server.all("/v1/jobs"):
            self.server.ask("DELETE", f"/v1/jobs/{job['id']}")
        self.server.wait_idle()
        self.server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def a_process_of_no_task_fences_its_gpu_and_the_job_starts_on_the_other(world):
    stranger = world.process()
    world.driver(f"gpu0={stranger.pid}:512")
    job = world.submit(1)
    world.wait_running(job)
    fault = f"process {stranger.pid} of uid {os.getuid()}, which is of no task, uses it with 512 MiB"
    gpu = world.gpu(0)
    assert gpu["fenced"] and not gpu["healthy"] and gpu["fault"] == fault, gpu
    assert world.gpu(1)["jobs"] == [job] and "fenced" not in world.gpu(1), world.gpu(1)
    shown = world.berth("nodes", "n1")
    assert f"GPU 0 is fenced: {fault}\n  once that is mended: berth uncordon n1 --gpu 0\n" in shown, shown
    pair = world.submit(2)
    why = " ".join(world.berth("why", str(pair)).split())
    assert f"1 GPU failed on n1, fenced: {fault}" in why, why
    assert any(event["kind"] == "gpu-health-changed" and event["why"] == fault
               for event in world.server.all_events()), "no event tells it"
    world.server.stop()
    world.start()
    assert world.gpu(0)["fenced"], "a restart lifts the fence"
    world.cancel(job)
    stranger.kill()
    stranger.wait()
    assert "takes tasks on that GPU again" in world.berth("uncordon", "n1", "--gpu", "0")
    assert "has no fence on that GPU" in world.berth("uncordon", "n1", "--gpu", "0")
    world.wait_running(pair)
    world.cancel(pair)
    trail = world.berth("audit", "--limit", "5")
    assert "fence lifted" in trail, trail


def what_a_task_that_is_over_has_left_is_killed_and_the_next_starts(world):
    first = world.submit(1, ["sh", "-c", "sleep 600"])
    world.wait_running(first)
    index = next(i for i in (0, 1) if world.gpu(i)["jobs"] == [first])
    launch = os.path.join(world.server.data, "run", "tasks", f"{first}.1.0.1", "launch.json")
    with open(launch) as file:
        token = json.load(file)["token"]
    # Another service has started it for the task: it is no descendant, and in no control group of the task.
    orphan = world.process({"BERTH_TASK_TOKEN": token, "PATH": os.environ["PATH"]})
    eventually("it has its own environment", lambda: token in open(f"/proc/{orphan.pid}/environ").read())
    world.driver(f"gpu{index}={orphan.pid}:512")
    world.server.ask("DELETE", f"/v1/jobs/{first}")
    eventually("the orphan is killed", lambda: orphan.poll() is not None)
    world.server.wait_phase(first, "finished")
    pair = world.submit(2)
    world.wait_running(pair)
    assert not any("fenced" in world.gpu(i) for i in (0, 1))
    world.cancel(pair)


def a_driver_that_hangs_fences_the_gpu_and_other_tasks_go_on(world):
    world.driver("hangs=0")
    job = world.submit(1)
    world.wait_running(job)
    fault = "the driver did not answer for it within 1500 ms"
    assert world.gpu(0).get("fault") == fault, world.gpu(0)
    assert world.gpu(1)["jobs"] == [job]
    world.driver()
    world.berth("uncordon", "n1", "--gpu", "0")
    world.cancel(job)


def two_shares_of_one_gpu_are_no_orphans_of_each_other(world):
    one = world.submit("0.5")
    world.wait_running(one)
    index = next(i for i in (0, 1) if world.gpu(i)["jobs"] == [one])
    rank = json.load(open(os.path.join(world.server.data, "run", "tasks", f"{one}.1.0.1", "started.json")))["ranks"][0]
    world.driver(f"gpu{index}={rank['pid'] if isinstance(rank, dict) else rank[0]}:512")
    two = world.submit("0.5")
    world.wait_running(two)
    assert sorted(world.gpu(index)["jobs"]) == [one, two], world.gpu(index)
    assert "fenced" not in world.gpu(index)
    world.driver()
    world.cancel(one, two)


def main():
    passed, failed = 0, 0
    world = World()
    try:
        for rule in (a_process_of_no_task_fences_its_gpu_and_the_job_starts_on_the_other,
                     what_a_task_that_is_over_has_left_is_killed_and_the_next_starts,
                     two_shares_of_one_gpu_are_no_orphans_of_each_other,
                     a_driver_that_hangs_fences_the_gpu_and_other_tasks_go_on):
            try:
                rule(world)
                passed += 1
            except Exception:  # noqa: BLE001: the next rule is asked all the same
                failed += 1
                print("FAILED:", rule.__name__.replace("_", " "))
                traceback.print_exc()
                world.clean()
    finally:
        world.end()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What a job can do to its supervisor, its run directory and its machine where it runs as the server's own user: it gains no
GPU and no time by it, and is told of. What it cannot do where it has a user of its own is in task_user_test.py."""
import datetime
import os
import shutil
import signal
import sys
import traceback

from patience import eventually
from server import Problem, Server, fresh_directory, processes_of

CONFIG = "cluster: test\nqueues:\n  a: {guaranteed: {gpus: 4}}\nscheduling: {grace: 2s}\n"
DAEMON = 1  # a user that Debian has on every machine


def started(gpus="2xH100-SXM5-80GB"):
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config, gpus=gpus)
    if os.geteuid() == 0:
        server.run_as(DAEMON)
    assert server.start(), server.tail()
    return server


def submit(server, script, **more):
    body = {"queue": "a", "gpus": 2, "cpus": 0.1, "memory": "128MiB", "command": ["bash", "-c", script], **more}
    return server.ask("POST", "/v1/jobs", body)["id"]


def ended(server, job, patience_s=60):
    return server.wait_phase(job, "finished", patience_s=patience_s)


def discard(server):
    if server.process.poll() is None:
        for job in server.all("/v1/jobs"):
            try:
                server.ask("DELETE", f"/v1/jobs/{job['id']}")
            except Problem:
                pass
        server.wait_idle()
        server.kill()
    for pid in processes_of(server.directory):
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(server.directory, ignore_errors=True)


def stat_of(pid):
    """What follows the name in /proc/PID/stat: the state, the parent, ...; of a process that is gone, X and 0."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return ["X", "0"]


def state_of(pid):
    return stat_of(pid)[0]


def parent_of(pid):
    return int(stat_of(pid)[1])


STOPS_ITS_SUPERVISOR = 'trap "" TERM; kill -STOP $PPID; while :; do sleep 0.2; done'


def a_supervisor_that_is_stopped_does_not_keep_a_job_past_its_time_limit():
    server = started()
    job = submit(server, STOPS_ITS_SUPERVISOR, time_limit="2s")
    assert ended(server, job)["outcome"] == "time-limit"
    assert processes_of(server.directory) == []
    warnings = server.ask("GET", "/v1/cluster")["warnings"]
    assert any("did not obey a stop" in one for one in warnings), warnings
    discard(server)


def a_stop_that_a_hung_supervisor_did_not_obey_is_kept_by_the_next_server():
    server = started()
    job = submit(server, STOPS_ITS_SUPERVISOR)
    eventually("its supervisor is stopped", lambda: "T" in [state_of(parent_of(one)) for one in processes_of(server.directory)])
    server.ask("DELETE", f"/v1/jobs/{job}")
    eventually("the stop is on record", lambda: any(
        event["kind"] == "stop-began" and event["job"] == job for event in server.all_events()))
    server.kill()
    assert server.start(), server.tail()
    assert ended(server, job)["outcome"] == "cancelled"
    assert processes_of(server.directory) == []
    discard(server)


def an_exit_that_a_job_forges_frees_nothing():
    server = started()
    script = f"cd {server.data}/run/tasks/$BERTH_JOB.*; echo '{{\"reason\": \"exited\", \"code\": 0, \"signal\": 0, \"rank\": 0, " \
             "\"time\": 1, \"ran_ms\": 1, \"cpu_ms\": 1, \"peak_rss_mib\": 1, \"bad_acks\": 0, \"message\": \"\"}' > exit.json; sleep 5; exit 3"
    job = submit(server, script)
    assert ended(server, job)["past"][-1]["code"] == 3, server.ask("GET", f"/v1/jobs/{job}")
    discard(server)


def a_job_that_removes_its_run_directory_ends():
    server = started()
    job = submit(server, f"rm -rf {server.data}/run/tasks/$BERTH_JOB.*; sleep 600")
    seen = ended(server, job)
    assert seen["outcome"] == "failed" and "run directory was removed" in seen["past"][-1]["message"], seen
    discard(server)


def a_job_that_kills_its_supervisor_waits_longer_each_time_and_then_has_failed():
    server = started()
    job = submit(server, "kill -KILL $PPID; sleep 600")
    seen = ended(server, job, 180)
    assert seen["outcome"] == "failed" and "6 times in a row" in seen["past"][-1]["message"], seen
    story = [event for event in server.all_events() if event.get("job") == job]
    starts, ends = ([datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")) for event in story if event["kind"] == kind]
                    for kind in ("attempt-started", "attempt-ended"))
    waits = [(start - end).total_seconds() for start, end in zip(starts[1:], ends)]
    assert len(waits) == 5 and all(wait >= least for wait, least in zip(waits, (1, 2, 4, 8, 16))), waits
    discard(server)


def a_full_disk_takes_no_job_but_stops_those_that_run():
    disk = "/dev/shm"
    if not os.path.isdir(disk) or os.statvfs(disk).f_blocks == 0:
        print("SKIPPED: there is no", disk)
        return
    # A reserve of 1 % cannot be reached without filling the whole disk, so a small one is mounted where that is allowed.
    directory = fresh_directory()
    if os.system(f"mount -t tmpfs -o size=100m none {directory} 2>/dev/null") != 0:
        print("SKIPPED: no file system can be mounted here")
        return
    try:
        config = os.path.join(directory, "cluster.yaml")
        with open(config, "w") as file:
            file.write(CONFIG)
        server = Server(directory, config, gpus="2xH100-SXM5-80GB")
        assert server.start(), server.tail()
        job = submit(server, "sleep 600")
        left = os.statvfs(directory)
        with open(os.path.join(directory, "ballast"), "wb") as file:
            file.write(bytes(left.f_bavail * left.f_frsize - (20 << 20)))
        try:
            submit(server, "true")
            raise AssertionError("a job was taken")
        except Problem as problem:
            assert problem.status == 503 and "MiB left" in str(problem), problem
        server.ask("DELETE", f"/v1/jobs/{job}")
        assert ended(server, job)["outcome"] == "cancelled"
        server.kill()
    finally:
        os.system(f"umount -l {directory}")
        shutil.rmtree(directory, ignore_errors=True)


def main():
    names = sys.argv[1:]
    cases = [case for name, case in globals().items() if callable(case) and name.split("_")[0] in ("a", "an")]
    cases = [case for case in cases if not names or any(name in case.__name__ for name in names)]
    failed = 0
    for case in cases:
        try:
            case()
            print("passed:", case.__name__.replace("_", " "))
        except BaseException:
            failed += 1
            print("FAILED:", case.__name__.replace("_", " "))
            traceback.print_exc()
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""berth backup and berth restore on a real server: a backup made while jobs are submitted, restored to a moment of it, served, and
its jobs are as they were; what is forgotten is said before; damage is refused; backups by the server's own schedule."""
import json
import os
import shutil
import subprocess
import sys
import threading

import tally
from patience import eventually
from server import Server, berth_binary, discard, fresh_directory, has_test_clock, start_with

CONFIG = """cluster: test
queues:
  red: {guaranteed: {gpus: 4}}
"""
KEYS = ("id", "name", "queue", "user", "phase", "held", "priority", "gpus", "submitted")


def submit(server, name):
    return server.ask("POST", "/v1/jobs", {"queue": "red", "cpus": 0.1, "memory": "64MiB", "command": ["true"], "gpus": 1, "hold": True,
                                           "name": name})["id"]


def jobs(server, at=None):
    return [{key: job.get(key) for key in KEYS} for job in server.all("/v1/jobs" + (f"?at={at}" if at else ""))]


def berth(*words):
    return subprocess.run([berth_binary(), *words], capture_output=True, text=True)


def done(*words):
    run = berth(*words, "-o", "json")
    assert run.returncode == 0, run
    return json.loads(run.stdout)


def refused(code, says, *words):
    run = berth(*words)
    assert run.returncode == code and says in run.stderr and run.stderr.startswith("berth: "), run
    return run


def backed_up_under_load(server):
    """A backup that was made while one thread submitted jobs; and how many there were before and in the end."""
    ending, submitted = threading.Event(), []

    def load():
        while not ending.is_set():
            submitted.append(submit(server, f"job-{len(submitted)}"))
    thread = threading.Thread(target=load)
    thread.start()
    eventually("ten jobs are there", lambda: len(submitted) >= 10)
    path = os.path.join(server.directory, "backup")
    backup = done("backup", server.data, path)
    after = len(submitted)
    eventually("jobs are submitted after the backup as well", lambda: len(submitted) > after + 5)
    ending.set()
    thread.join()
    return path, backup


def jobs_are_as_they_were_after_a_restore():
    server = start_with(CONFIG)
    path, backup = backed_up_under_load(server)
    assert backup["jobs"] >= 10 and backup["seq"] > 10, backup
    assert os.stat(path).st_mode & 0o777 == 0o700
    assert {os.stat(os.path.join(path, name)).st_mode & 0o777 for name in os.listdir(path)} == {0o600}
    time = server.ask("GET", f"/v1/events?from={backup['seq'] // 2}&limit=1")["items"][0]["time"]
    fresh = os.path.join(server.directory, "restored", "data")
    os.mkdir(os.path.dirname(fresh))
    told = refused(2, "add --yes", "restore", path, fresh, "--at", time, "--beside", server.data).stdout
    assert "forgets" in told and "submitted" in told and not os.path.exists(fresh), told
    plan = done("restore", path, fresh, "--at", time, "--beside", server.data, "--dry-run")
    moment = plan["restores"]["seq"]
    assert moment < backup["seq"] and plan["restored"] is None and not os.path.exists(fresh), plan
    assert plan["forgets"]["first_seq"] == moment + 1 and plan["forgets"]["last_seq"] == backup["seq"], plan
    assert plan["forgets_beside"]["events"] > plan["forgets"]["events"] > 0, plan
    assert plan["forgets"]["kinds"]["job-submitted"] == len(plan["forgets"]["jobs_submitted"]), plan
    then, known = jobs(server, moment), {job["id"] for job in jobs(server)}
    assert known - {job["id"] for job in then} == set(plan["forgets_beside"]["jobs_submitted"])
    assert done("restore", path, fresh, "--at", time, "--yes")["restored"] == fresh
    refused(4, "not empty", "restore", path, fresh, "--at", time, "--yes")
    assert berth("verify", fresh).returncode == 0
    server.stop()
    restored = Server(os.path.dirname(fresh))
    assert restored.start(), restored.tail()
    assert restored.token == server.token
    assert jobs(restored) == jobs(restored, moment) == then
    assert restored.ask("GET", "/healthz")["status"] == "ok", "its end is known"
    first = submit(restored, "next")
    assert first > 5_000_000 and submit(restored, "and-next") == first + 1, f"{first}: a number of a forgotten job may be given again"
    restored.stop()
    assert not os.path.exists(os.path.join(fresh, "restored"))
    assert restored.start(), restored.tail()
    assert submit(restored, "later") == first + 2, "it was restored once"
    restored.kill()
    discard(server)


def the_whole_backup_is_restored_proved_and_drilled():
    server = start_with(CONFIG)
    for i in range(3):
        submit(server, f"job-{i}")
    server.stop()
    path, fresh = (os.path.join(server.directory, name) for name in ("backup", "fresh"))
    backup = done("backup", server.data, path)
    assert done("backup", "--drill", path)["proved"]
    assert sorted(os.listdir(server.directory)).count("backup") == 1 and not any(".drill" in name for name in os.listdir(server.directory))
    plan = done("restore", path, fresh)
    assert plan["forgets"]["events"] == 0 and plan["restored"] == fresh, plan
    assert [plan["restores"][key] for key in ("seq", "chain_hash", "state_hash")] == [backup[key] for key in
                                                                                    ("seq", "chain_hash", "state_hash")]
    log = os.path.join(path, "log.db")
    with open(log, "r+b") as file:
        file.truncate(os.path.getsize(log) - 4096)
    refused(1, "the backup is damaged", "restore", path, fresh + "-2")
    refused(1, "the backup is damaged", "backup", "--drill", path)
    refused(3, "no finished backup", "restore", server.data, fresh + "-2")
    refused(2, "give the data directory and the new directory", "backup", server.data)
    assert not os.path.exists(fresh + "-2")
    discard(server)


def the_server_makes_backups_by_its_own_schedule():
    if not has_test_clock():
        return  # it would take hours
    shelf = fresh_directory()
    server = start_with(CONFIG, ["--backup-to", shelf, "--backup-every", "1h", "--backup-keep", "2"])
    warnings = lambda: " ".join(server.ask("GET", "/v1/cluster")["warnings"])
    finished = lambda: sorted(name for name in os.listdir(shelf) if ".unfinished" not in name)
    first = eventually("a first backup", finished)
    server.pass_time(3601)
    eventually("a second one", lambda: len(finished()) == 2)
    server.pass_time(3601)
    eventually("a third one, and the first is gone", lambda: first[0] not in finished() and len(finished()) == 2)
    assert done("backup", "--drill", os.path.join(shelf, finished()[-1]))["proved"]
    assert "backup" not in warnings() and "berth_backup_failures_total 0" in server.text("/metrics")
    shutil.rmtree(shelf)
    server.pass_time(3601)
    eventually("a warning that there is no such directory", lambda: f"the backup to {shelf} failed" in warnings())
    assert "berth_backup_failures_total 1" in server.text("/metrics")
    os.mkdir(shelf)
    server.pass_time(601)
    eventually("it is tried again, and the warning is gone", lambda: "the backup to" not in warnings() and finished())
    server.stop()
    shutil.rmtree(shelf)
    discard(server)


if __name__ == "__main__":
    sys.exit(tally.run([jobs_are_as_they_were_after_a_restore, the_whole_backup_is_restored_proved_and_drilled,
                        the_server_makes_backups_by_its_own_schedule]))

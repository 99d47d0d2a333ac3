#!/usr/bin/env python3
"""The server and its data directory: refused where it must be, damage named, nothing acknowledged lost."""
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import traceback

from patience import eventually, read_until, stretched
from server import Problem, Server, berth_binary, discard, fresh_directory, processes_of

CONFIG = "cluster: test\nqueues:\n  a: {guaranteed: {gpus: 4}}\n  b: {max: {gpus: 4}}\n"


def started(name, environment=None):
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config)
    server.ready = server.start(environment)
    return server


def sleeper(seconds="0.1"):
    return {"queue": "a", "gpus": 1, "command": ["sleep", seconds]}


def verify(server):
    return subprocess.run([berth_binary(), "verify", server.data], capture_output=True, text=True)


def a_second_server_on_one_directory_is_refused():
    server = started("second")
    second = subprocess.run([berth_binary(), "serve", "--data", server.data, "--simulate-gpus", "1xH100-SXM5-80GB"],
                            capture_output=True, text=True, timeout=stretched(60))
    assert second.returncode == 4, second
    assert str(server.process.pid) in second.stderr and "one server" in second.stderr, second.stderr
    assert server.ask("GET", "/healthz")["status"] == "ok"
    discard(server)


def a_failed_sync_ends_the_process_and_loses_nothing():
    server = started("sync", {"BERTH_STORE_FAULT": "fsync:12:eio"})
    acknowledged = []
    try:
        for _ in range(50):
            acknowledged.append(server.ask("POST", "/v1/jobs", sleeper("600"))["id"])
    except (OSError, Problem, Exception):
        pass
    assert server.process.wait(stretched(20)) == 74, (server.process.returncode, server.tail())
    assert "cannot be written" in server.tail(), server.tail()
    assert server.start(), server.tail()
    jobs = {job["id"] for job in server.all("/v1/jobs?finished=true")}
    assert set(acknowledged) <= jobs, (acknowledged, jobs)
    for job in jobs:
        server.ask("DELETE", f"/v1/jobs/{job}")
    server.wait_idle()
    server.stop()
    assert verify(server).returncode == 0, verify(server).stderr
    discard(server)


def a_damaged_row_is_named_by_its_sequence_number():
    server = started("row")
    for _ in range(3):
        server.ask("POST", "/v1/jobs", sleeper("0"))
    server.wait_idle()
    server.kill()
    path = next(os.path.join(server.data, name) for name in os.listdir(server.data) if name.endswith(".db"))
    database = sqlite3.connect(path)
    table = next(row[0] for row in database.execute("select name from sqlite_master where type='table'")
                 if "payload" in [column[1] for column in database.execute(f"pragma table_info({row[0]})")])
    database.execute(f"update {table} set payload = x'00' where seq = 4")
    database.commit()
    database.close()
    found = verify(server)
    assert found.returncode == 1 and "4" in found.stderr and "Restore a backup" in found.stderr, found
    assert not server.start(), "a damaged log was accepted"
    assert "4" in server.tail() and "Restore a backup (docs/store.md)" in server.tail(), server.tail()
    discard(server)


def payload_of(server, seq, change=None):
    """The payload of a record; `change` replaces it."""
    database = sqlite3.connect(os.path.join(server.data, "log.db"))
    payload = database.execute("select payload from records where seq = ?", (seq,)).fetchone()[0]
    if change is not None:
        database.execute("update records set payload = ? where seq = ?", (change, seq))
        database.commit()
    database.close()
    return payload


def a_flipped_byte_before_the_newest_checkpoint_ends_the_server():
    server = started("old-row")
    for _ in range(3):
        server.ask("POST", "/v1/jobs", sleeper("0"))
    server.wait_idle()
    server.stop()
    assert any(name.startswith("checkpoint-") for name in os.listdir(server.data))
    whole = payload_of(server, 4)
    payload_of(server, 4, whole[:-1] + bytes([whole[-1] ^ 1]))
    # It may have begun to serve, and then ends by itself; the next start is refused before it serves.
    server.start()
    assert server.process.wait(stretched(20)) == 74, server.tail()
    assert "record 4:" in server.tail() and "damaged" in server.tail(), server.tail()
    os.truncate(server.log, 0)
    assert not server.start(), "a log known to be damaged was served again"
    assert server.process.returncode == 74 and "record 4:" in server.tail(), server.tail()
    payload_of(server, 4, whole)
    assert server.start(), server.tail()
    eventually("the log is checked", lambda: server.ask("GET", "/healthz")["log_check"] == "sound")
    log = server.ask("GET", "/v1/cluster")["log"]
    assert log["check"] == "sound" and log["checked"] > 4, log
    discard(server)


def a_missing_or_garbled_head_file_is_told():
    server = started("head")
    server.ask("POST", "/v1/jobs", sleeper("0"))
    server.wait_idle()
    head = os.path.join(server.data, "head")
    for spoil, word in ((lambda: os.remove(head), "missing"), (lambda: open(head, "w").write("head what?\n"), "damaged")):
        server.stop()
        spoil()
        checked = verify(server)
        assert checked.returncode == 0 and f"is {word}" in checked.stdout, checked
        assert server.start(), server.tail()
        warnings = server.ask("GET", "/v1/cluster")["warnings"]
        assert any(f"head is {word}" in warning for warning in warnings), warnings
        assert f"head is {word}" in server.tail(), server.tail()
    server.stop()
    assert "head is" not in verify(server).stdout
    discard(server)


def an_end_of_the_log_that_nothing_shows_is_no_ok():
    server = started("unknown-end")
    assert server.ask("GET", "/healthz")["status"] == "ok"
    server.kill()
    os.remove(os.path.join(server.data, "head"))
    assert server.start()
    assert server.ask("GET", "/healthz")["status"] == "log-end-unknown"
    assert server.ask("GET", "/readyz")["status"] == "log-end-unknown"
    server.stop()
    assert server.start()
    assert server.ask("GET", "/healthz")["status"] == "ok"
    server.stop()
    discard(server)


def a_wrong_configuration_is_refused_with_its_place():
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write("queues:\n  a:\n    max: {gpus: -3}\n")
    done = subprocess.run([berth_binary(), "serve", "--data", os.path.join(directory, "data"), "--config", config],
                          capture_output=True, text=True, timeout=stretched(60))
    assert done.returncode == 2, done
    assert "cluster.yaml:3:" in done.stderr and "negative" in done.stderr, done.stderr
    shutil.rmtree(directory)


def a_configuration_without_end_is_refused():
    done = subprocess.run([berth_binary(), "serve", "--data", "never-made", "--config", "/dev/zero"], capture_output=True, text=True, timeout=stretched(60))
    assert done.returncode == 2 and "larger than 1 MiB" in done.stderr, done
    assert not os.path.exists("never-made")


def an_address_beyond_this_machine_wants_tls():
    directory = fresh_directory()
    for flags in (["--listen", "0.0.0.0"], ["--listen", "0.0.0.0", "--insecure-listen"], ["--listen", "::"]):
        command = [berth_binary(), "serve", "--data", os.path.join(directory, "data"), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60))
        assert done.returncode == 2 and "--tls-cert" in done.stderr and done.stderr.count("\n") == 1, done
        assert not os.path.exists(os.path.join(directory, "data"))


def a_node_has_a_name_that_is_one():
    for name in ("../x", "a b", "a\nb", "-x", "x" * 64):
        directory = fresh_directory()
        command = [berth_binary(), "serve", "--data", os.path.join(directory, "data"), "--simulate-gpus", "1xH100-SXM5-80GB",
                   "--node-name=" + name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(20))
        assert done.returncode == 2 and "--node-name: this is not a name" in done.stderr, (name, done)
        shutil.rmtree(directory)


# --- the node of the server: its pool, place, labels and taints ---

PLACED = """topology: [block, rack]
pools: [{name: default}, {name: big, queues: [a]}, {name: other}]
queues:
  a: {guaranteed: {gpus: 4}}
  b: {max: {gpus: 4}}
"""


def placed(*flags):
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(PLACED)
    server = Server(directory, config, flags=flags)
    assert server.start(), server.tail()
    return server


def asks_for_the_node(seconds="0.1", **more):
    return {"queue": "a", "gpus": 2, "tasks": 2, "pool": "big", "node_selector": {"disk": "nvme"}, "tolerations": ["spot"],
            "topology": {"required": "rack"}, "command": ["sleep", seconds], **more}


def a_job_names_the_pool_the_label_the_taint_and_the_rack_of_the_servers_node():
    server = placed("--node-pool", "big", "--node-at", "b1/r1", "--node-label", "disk=nvme", "--node-label=zone=east", "--node-taint", "spot")
    node = server.ask("GET", "/v1/nodes/n1")
    assert (node["pool"], node["topology"], node["taints"]) == ("big", ["b1", "r1"], [{"key": "spot", "value": "", "effect": "NoSchedule"}]), node
    assert {"disk": "nvme", "zone": "east"}.items() <= node["labels"].items() and "berth.boot" in node["labels"], node
    job = server.ask("POST", "/v1/jobs", asks_for_the_node())["id"]
    server.wait_phase(job, "finished")
    assert server.ask("GET", f"/v1/jobs/{job}")["outcome"] == "succeeded"
    keeps_away = {"the job tolerated the taint spot": {"tolerations": []},
                  "the job did not select nodes by the label disk": {"node_selector": {"disk": "slow"}},
                  "the job asked for pool big instead of other": {"pool": "other"},
                  "pool big takes only jobs of queue a": {"queue": "b"}}
    for said, change in keeps_away.items():
        waits = server.ask("POST", "/v1/jobs", asks_for_the_node(**change))["id"]
        why = server.ask("GET", f"/v1/jobs/{waits}/why")
        assert why["phase"] == "pending" and why["code"] == "no-eligible-node", why
        assert said in why["details"] + [one["text"] for one in why["remedies"]], why
    assert not any("--node" in warning for warning in server.ask("GET", "/v1/cluster")["warnings"])
    discard(server)


def a_server_that_starts_with_other_flags_has_another_node():
    server = placed("--node-pool", "big", "--node-at", "b1/r1", "--node-label", "disk=nvme", "--node-taint", "spot")
    runs = server.ask("POST", "/v1/jobs", asks_for_the_node("600"))["id"]
    moved = {**asks_for_the_node(pool="other", tolerations=[]), "node_selector": {"disk": "slow"}}
    waits = server.ask("POST", "/v1/jobs", moved)["id"]
    server.wait_phase(runs, "running")
    server.stop()
    server.flags = ["--node-pool", "other", "--node-at", "b2/r1", "--node-label", "disk=slow"]
    assert server.start(), server.tail()
    server.wait_phase(waits, "finished")
    node = server.ask("GET", "/v1/nodes/n1")
    assert (node["pool"], node["topology"], node["taints"], node["labels"]["disk"]) == ("other", ["b2", "r1"], [], "slow"), node
    assert len(server.all("/v1/nodes")) == 1 and server.ask("GET", f"/v1/jobs/{runs}")["phase"] == "running"
    server.ask("DELETE", f"/v1/jobs/{runs}")
    server.wait_idle()
    server.stop()
    assert verify(server).returncode == 0, verify(server).stderr
    discard(server)


def a_place_or_a_pool_that_the_configuration_does_not_know_is_told():
    server = placed("--node-pool", "bgi")
    assert "no pool 'bgi', only default, big, other" in " ".join(server.ask("GET", "/v1/cluster")["warnings"])
    server.stop()
    server.config, server.flags = None, ["--node-pool", "big", "--node-at", "b1/r1/x"]  # the configuration is in the log
    assert server.start(), server.tail()
    warnings = " ".join(server.ask("GET", "/v1/cluster")["warnings"])
    assert "'b1/r1/x' has more names" in warnings and "block/rack" in warnings and "no pool" not in warnings, warnings
    discard(server)


def a_node_that_is_described_wrongly_leaves_no_log():
    directory = fresh_directory()
    config, data = os.path.join(directory, "cluster.yaml"), os.path.join(directory, "data")
    with open(config, "w") as file:
        file.write(PLACED)
    wrong = {"--node-label: 'disk' is given twice": ["--node-label", "disk=nvme", "--node-label", "disk=slow"],
             "--node-label: 'disk' is not KEY=VALUE": ["--node-label", "disk"],
             "labels that begin with 'berth.' are berth's own": ["--node-label", "berth.boot=1"],
             "--node-taint: 'spot' is given twice": ["--node-taint", "spot", "--node-taint", "spot"],
             "--node-taint: 'spot=x' is not the key of a taint": ["--node-taint", "spot=x"],
             "--node-pool: this is not a name": ["--node-pool", "a b"],
             "--node-at: give a name for each level": ["--node-at", "b1//r1"],
             "--node-at: 'b1/r1/x' has more names than the topology": ["--node-at", "b1/r1/x"],
             "then there is no node for --node-pool": ["--no-node", "--node-pool", "big"],
             "was not expected": ["--node-label", "a=b", "c=d"]}
    for said, flags in wrong.items():
        for verb in ("serve", "dev"):
            if verb == "dev" and "--no-node" in flags:
                continue
            done = subprocess.run([berth_binary(), verb, "--data", data, "--config", config, "--port", "0", *flags], capture_output=True,
                                  text=True, timeout=stretched(20))
            assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stderr.startswith("berth: "), (flags, done)
            assert said in done.stderr or said == "was not expected", (flags, done)
            assert not os.path.exists(data), flags
    shutil.rmtree(directory)


def a_body_far_too_large_is_answered_and_not_cut_off():
    server = started("large")
    try:
        server.ask("POST", "/v1/jobs", {"queue": "a", "command": ["x" * 20_000_000]})
        raise AssertionError("20 MB were taken")
    except Problem as problem:
        assert problem.status == 413, problem
    discard(server)


def a_task_is_supervised_by_the_small_program():
    server = started("supervisor")
    job = server.ask("POST", "/v1/jobs", {**sleeper("600"), "checkpoint": {"grace": "1s"}})
    server.wait_phase(job["id"], "running")
    tasks = eventually("its process is there", lambda: processes_of(server.directory))
    with open(f"/proc/{tasks[0]}/stat") as file:
        supervisor = int(file.read().rsplit(")", 1)[1].split()[1])
    assert os.path.basename(os.readlink(f"/proc/{supervisor}/exe")) == "berth-supervise", os.readlink(f"/proc/{supervisor}/exe")
    with open(f"/proc/{supervisor}/comm") as file:
        assert file.read() == "berth-supervise\n"
    with open(f"/proc/{supervisor}/maps") as file:
        assert "libcurl" not in file.read()
    server.ask("DELETE", f"/v1/jobs/{job['id']}")
    server.wait_idle()
    server.stop()
    discard(server)


def a_finished_job_leaves_its_directory_for_a_while_only():
    server = started("keep")
    kept = server.ask("POST", "/v1/jobs", sleeper("0"))["id"]
    lives = server.ask("POST", "/v1/jobs", sleeper("600"))["id"]
    directory = lambda job: os.path.join(server.data, "jobs", str(job))
    server.wait_phase(kept, "finished")
    eventually("the directory of the job that lives is there", lambda: os.path.exists(directory(lives)))
    strange = os.path.join(server.data, "jobs", "4711")  # a job that the log does not know
    os.mkdir(strange)
    server.stop()
    assert os.path.exists(directory(kept))
    server.flags = ["--keep-finished", "1s"]
    assert server.start(), server.tail()
    eventually("the old directory is removed", lambda: not os.path.exists(directory(kept)))
    assert os.path.exists(directory(lives)) and os.path.exists(strange)
    try:
        server.ask("GET", f"/v1/jobs/{kept}/logs")
        raise AssertionError("output that is gone was read")
    except Problem as problem:
        assert problem.status == 404 and "kept for 1s" in problem.body, problem
    assert server.ask("GET", f"/v1/jobs/{kept}")["phase"] == "finished"
    server.ask("DELETE", f"/v1/jobs/{lives}")
    server.wait_idle()
    discard(server)


def a_log_is_followed_over_a_restart_and_into_the_next_attempt():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(fresh_directory(), flags=["--port", str(port)])
    assert server.start(), server.tail()
    server.ask("PUT", "/v1/config", {"queues": {"a": {}}})
    script = 'for i in 1 2 3 4 5 6; do echo $BERTH_ATTEMPT.$i; sleep 0.5; done; test $BERTH_ATTEMPT = 2'
    job = server.ask("POST", "/v1/jobs", {"queue": "a", "retries": 1, "command": ["sh", "-c", script]})["id"]
    following = subprocess.Popen([berth_binary(), "logs", "-f", str(job)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{port}",
                                      "BERTH_TOKEN_FILE": os.path.join(server.data, "token")})
    assert following.stdout.readline() == "1.1\n"
    server.kill()
    begin = read_until(following.stderr, b"waiting for the server")[0].decode()
    assert server.start(), server.tail()
    rest, said = following.communicate(timeout=stretched(60))
    said = begin + said
    lines = ["1.1", *rest.split()]
    assert lines == [f"{attempt}.{i}" for attempt in (1, 2) for i in range(1, 7)], (lines, said)
    assert following.returncode == 0 and said.count("waiting for the server") == 1, (following.returncode, said)
    discard(server)


def everything_but_health_and_the_document_wants_the_token():
    server = started("token")
    assert oct(os.stat(os.path.join(server.data, "token")).st_mode & 0o777) == "0o600"
    server.token = "0" * 64
    for path in ("/v1/jobs", "/v1/snapshot", "/metrics", "/v1/events"):
        try:
            server.ask("GET", path)
            raise AssertionError(path + " was served without the token")
        except Problem as problem:
            assert problem.status == 401, problem
    assert server.ask("GET", "/healthz")["status"] == "ok"
    assert server.ask("GET", "/openapi.json")["info"]["title"] == "berth"
    discard(server)


def a_restart_keeps_keys_states_and_stories():
    server = started("restart")
    first = server.ask("POST", "/v1/jobs", sleeper("0"), {"Idempotency-Key": "k"})
    server.wait_idle()
    server.kill()
    assert server.start(), server.tail()
    again = server.ask("POST", "/v1/jobs", sleeper("0"), {"Idempotency-Key": "k"})
    assert again["id"] == first["id"] and again["repeated"], again
    try:
        server.ask("POST", "/v1/jobs", sleeper("1"), {"Idempotency-Key": "k"})
        raise AssertionError("one key, two bodies")
    except Problem as problem:
        assert problem.status == 409, problem
    story = server.ask("GET", f"/v1/jobs/{first['id']}")
    assert story["phase"] == "finished" and len(story["past"]) == 1, story
    server.stop()
    discard(server)


def a_job_whose_time_comes_while_everything_is_taken_goes_on_waiting():
    from datetime import datetime, timedelta, timezone
    server = started("timer")
    first = server.ask("POST", "/v1/jobs", {**sleeper("600"), "gpus": 8})
    soon = (datetime.now(timezone.utc) + timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    second = server.ask("POST", "/v1/jobs", {**sleeper("0"), "gpus": 8, "earliest_start": soon})
    server.wait_phase(first["id"], "running")
    server.pass_time(5)
    eventually("it waits for the GPUs alone", lambda: server.job(second["id"]).get("reason") not in (None, "earliest-start"))
    for job in (first, second):
        server.ask("DELETE", f"/v1/jobs/{job['id']}")
    server.wait_idle()
    assert server.process.poll() is None, server.tail()
    discard(server)


def a_nameless_array_numbers_its_elements():
    server = started("array")
    parent = server.ask("POST", "/v1/jobs", {"queue": "a", "gpus": 1, "command": ["true"], "kind": "array", "array": {"size": 2}})
    server.wait_idle()
    names = {job["name"] for job in server.all("/v1/jobs?finished=true") if job["id"] != parent["id"]}
    assert names == {"0", "1"}, names
    discard(server)


def a_server_that_starts_under_another_name_is_the_same_node_and_its_jobs_run_on():
    server = started("renamed")
    job = server.ask("POST", "/v1/jobs", {**sleeper("600"), "gpus": 8})
    server.wait_phase(job["id"], "running")
    running = processes_of(server.data)
    gpus = [gpu["uuid"] for gpu in server.ask("GET", "/v1/nodes/n1")["gpus"]]
    for name in ("n2", "n3", "n1"):
        server.stop()
        server.node_name = name
        assert server.start(), server.tail()
        eventually(f"there is a node {name}", lambda: name in [node["name"] for node in server.all("/v1/nodes")])
        nodes = server.all("/v1/nodes")
        assert [(node["name"], node["status"]) for node in nodes] == [(name, "ready")], nodes
        assert [gpu["uuid"] for gpu in nodes[0]["gpus"]] == gpus and all(gpu["healthy"] for gpu in nodes[0]["gpus"])
        cluster = server.ask("GET", "/v1/cluster")
        assert (cluster["nodes"], cluster["gpus"], cluster["gpus_free"]) == (1, 8, 0), cluster
    assert set(running) <= set(processes_of(server.data))
    second = server.ask("POST", "/v1/jobs", {**sleeper("0"), "gpus": 1})
    seen = eventually("a cycle has tried it", lambda: server.job(second["id"]).get("reason") and server.job(second["id"]))
    assert seen["phase"] == "pending", seen  # no phantom node takes it
    renamed = [event for event in server.all_events() if event.get("renamed_from")]
    assert [event["renamed_from"] for event in renamed] == ["n1", "n2", "n3"], renamed
    with_metrics = server.text("/metrics")
    assert 'berth_nodes{state="ready"} 1' in with_metrics and 'berth_nodes{state="lost"} 0' in with_metrics
    server.ask("DELETE", f"/v1/jobs/{job['id']}")
    server.wait_idle()
    server.stop()
    assert verify(server).returncode == 0, verify(server)
    discard(server)


def a_data_directory_on_another_machine_gives_up_the_node_that_is_not_there():
    server = started("moved")
    job = server.ask("POST", "/v1/jobs", {**sleeper("600"), "gpus": 8})
    server.wait_phase(job["id"], "running")
    running = processes_of(server.data)
    server.stop()
    os.remove(os.path.join(server.data, "machine"))  # to the server this is another machine
    server.node_name = "n2"
    assert server.start(), server.tail()
    eventually("there is a node n2", lambda: "n2" in [node["name"] for node in server.all("/v1/nodes")])
    assert {node["name"]: node["status"] for node in server.all("/v1/nodes")} == {"n1": "lost", "n2": "ready"}
    # What ran is ended before it starts again, so that no GPU has two jobs.
    server.wait_phase(job["id"], "running")
    assert not set(running) & set(processes_of(server.data))
    assert server.ask("GET", "/v1/cluster")["gpus"] == 8
    server.ask("DELETE", f"/v1/jobs/{job['id']}")
    server.wait_idle()
    discard(server)


def set_wall_clock(server, ahead_s):
    with open(server.wall_clock + ".new", "w") as file:
        file.write(str(int(ahead_s * 1000)))
    os.rename(server.wall_clock + ".new", server.wall_clock)


def with_a_wall_clock(name):
    server = started(name)
    server.stop()
    server.wall_clock = os.path.join(server.directory, "wall-clock")
    server.flags += ["--keep-finished", "1d"]
    set_wall_clock(server, 0)
    assert server.start({"BERTH_WALL_CLOCK_FILE": server.wall_clock}), server.tail()
    return server


HOUR, DAY, YEAR = 3600, 86400, 365 * 86400


def gpu_seconds(server):
    return sum(row["gpu_seconds"] for row in server.ask("GET", "/v1/usage")["items"])


def a_step_of_the_wall_clock_is_told_and_ends_bills_and_removes_nothing():
    server = with_a_wall_clock("steps")
    finished = server.ask("POST", "/v1/jobs", sleeper("0"))
    server.wait_idle()
    kept = os.path.join(server.data, "jobs", str(finished["id"]))
    assert os.path.isdir(kept)
    begin = time.monotonic()
    job = server.ask("POST", "/v1/jobs", {**sleeper("600"), "gpus": 8, "time_limit": "1h"})
    server.wait_phase(job["id"], "running")
    for ahead_s in (2 * HOUR, 8 * DAY, 10 * YEAR, -HOUR):
        set_wall_clock(server, ahead_s)
        eventually("the clock is seen and not followed", lambda: not server.ask("GET", "/v1/clock")["followed"]
                   and abs(server.ask("GET", "/v1/clock")["offset_ms"] - ahead_s * 1000) < 60_000)
        server.stop()  # a restart does not make it right either
        assert server.start({"BERTH_WALL_CLOCK_FILE": server.wall_clock}), server.tail()
        later = server.ask("POST", "/v1/jobs", {"queue": "a", "gpus": 0, "command": ["true"]})["id"]
        server.wait_phase(later, "finished")  # so the loop has looked at its timers since
        assert server.job(job["id"])["phase"] == "running"
        clock = server.ask("GET", "/v1/clock")
        assert not clock["followed"], clock
        offset = float([line for line in server.text("/metrics").splitlines()
                        if line.startswith("berth_clock_offset_seconds ")][0].split()[1])
        assert abs(offset - ahead_s) < 60, offset
        assert "berth_clock_unconfirmed 1" in server.text("/metrics")
        assert any("wall clock" in warning for warning in server.ask("GET", "/v1/cluster")["warnings"])
    used = gpu_seconds(server)
    assert used <= 8 * (time.monotonic() - begin) + 1, used  # allowed: a bound that grows with the time it takes
    assert "is not followed" in server.tail(), server.tail()
    set_wall_clock(server, 0)
    eventually("the right clock is followed", lambda: server.ask("GET", "/v1/clock")["followed"])
    assert not any("wall clock" in warning for warning in server.ask("GET", "/v1/cluster")["warnings"])
    server.ask("DELETE", f"/v1/jobs/{job['id']}")
    server.wait_idle()
    server.stop()  # after the sweeps of all these starts
    assert os.path.isdir(kept)
    discard(server)


def a_confirmed_wall_clock_is_followed_and_the_log_says_so():
    server = with_a_wall_clock("confirmed")
    job = server.ask("POST", "/v1/jobs", {**sleeper("600"), "gpus": 1, "time_limit": "1h", "checkpoint": {"grace": "1s"}})
    server.wait_phase(job["id"], "running")
    try:
        server.ask("POST", "/v1/clock/confirm?offset_ms=7200000")
        raise AssertionError("a clock that is followed was confirmed")
    except Problem as problem:
        assert problem.status == 409, problem
    set_wall_clock(server, 2 * HOUR)
    eventually("the clock is not followed", lambda: not server.ask("GET", "/v1/clock")["followed"])
    offset_ms = server.ask("GET", "/v1/clock")["offset_ms"]
    try:
        server.ask("POST", f"/v1/clock/confirm?offset_ms={offset_ms - 3600_000}")
        raise AssertionError("an offset that nobody saw was confirmed")
    except Problem as problem:
        assert problem.status == 409, problem
    answer = server.ask("POST", f"/v1/clock/confirm?offset_ms={offset_ms}")
    assert answer["followed"], answer
    eventually("the confirmed clock is followed", lambda: server.ask("GET", "/v1/clock")["followed"])
    assert abs(server.ask("GET", "/v1/clock")["offset_ms"]) < 5000
    confirmed = [event for event in server.all_events() if event["kind"] == "clock-confirmed"]
    assert len(confirmed) == 1 and confirmed[0]["user"], confirmed
    server.wait_idle()  # its hour is over now
    assert server.ask("GET", f"/v1/jobs/{job['id']}")["outcome"] == "time-limit"
    server.stop()
    assert verify(server).returncode == 0, verify(server)
    discard(server)


def main():
    cases = [case for name, case in globals().items() if callable(case) and name.split("_")[0] in ("a", "an", "everything") and name != "all"]
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

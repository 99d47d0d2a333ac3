#!/usr/bin/env python3
"""The state at past moments (?at=SEQ) on a real server: what was answered then is answered again, from any checkpoint, after
a restart, with the roles of today; what cannot be answered is refused with the reason; nothing else waits."""
import os
import shutil
import subprocess
import sys
import threading
import time

import tally
from server import Problem, Server, berth_binary, fresh_directory

CONFIG = """cluster: test
queues:
  red: {guaranteed: {gpus: 4}}
  blue: {guaranteed: {gpus: 4}}
"""


def started(flags=("--checkpoint-every", "20")):
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config, flags=flags)
    assert server.start(), server.tail()
    return server


def discard(server):
    server.kill()
    shutil.rmtree(server.directory, ignore_errors=True)


def submit(server, queue, **job):
    return server.ask("POST", "/v1/jobs", {"queue": queue, "cpus": 0.1, "memory": "64MiB", "command": ["sleep", "600"], **job})["id"]


def facts(server, at=None, headers=None):
    """What does not depend on the time of the answer, and the event that it was after."""
    suffix = "" if at is None else f"at={at}"
    get = lambda path: server.ask("GET", path + (("&" if "?" in path else "?") + suffix if suffix else ""), headers=headers)
    while True:
        jobs, queues, nodes, cluster = get("/v1/jobs?limit=1000"), get("/v1/queues"), get("/v1/nodes"), get("/v1/cluster")
        if len({jobs["seq"], queues["seq"], nodes["seq"], cluster["seq"]}) == 1:
            break  # else an event came in between
    shown = {
        "jobs": [{key: job.get(key) for key in ("id", "name", "queue", "user", "phase", "held", "priority", "gpus", "nodes",
                                                "attempt", "reason", "submitted", "started")} for job in jobs["items"]],
        "queues": [{key: queue[key] for key in ("path", "guaranteed", "usage", "running", "pending")}
                   for queue in queues["items"]],
        "nodes": [(node["name"], node["status"], node["cordoned"], [gpu["jobs"] for gpu in node["gpus"]])
                  for node in nodes["items"]],
        "cluster": [cluster[key] for key in ("nodes", "gpus", "gpus_free", "jobs_pending", "jobs_running")],
    }
    return jobs["seq"], shown


def live_through(server):
    """A little life, and what was answered after each step of it."""
    seen = []
    keep = lambda: seen.append(facts(server))
    keep()
    ids = []
    for i in range(6):
        ids.append(submit(server, ("red", "blue")[i % 2], gpus=2, name=f"job-{i}", user=("ada", "bob")[i % 2]))
        keep()
    server.ask("POST", f"/v1/jobs/{ids[5]}/hold")
    keep()
    server.ask("PUT", f"/v1/jobs/{ids[4]}/priority", {"priority": 700})
    keep()
    server.ask("POST", "/v1/nodes/n1/cordon")
    keep()
    server.ask("DELETE", f"/v1/jobs/{ids[0]}")
    deadline = time.monotonic() + 60
    while server.ask("GET", f"/v1/jobs/{ids[0]}")["phase"] != "finished" and time.monotonic() < deadline:
        time.sleep(0.1)
    keep()
    server.ask("POST", "/v1/nodes/n1/uncordon")
    keep()
    for _ in range(15):
        submit(server, "red", gpus=1, hold=True)
    keep()
    return ids, seen


def what_was_answered_then_is_answered_again():
    server = started()
    ids, seen = live_through(server)
    order = list(range(len(seen)))
    for step in order + order[::-1] + order[::3] + order[1::3]:  # onwards from a state that is there, and back before it
        seq, then = seen[step]
        answered, again = facts(server, seq)
        assert (answered, again) == (seq, then), (step, seq, [key for key in then if then[key] != again[key]])
    last_seq = seen[-1][0]
    server.stop()
    assert server.start(), server.tail()
    for seq, then in seen:
        assert facts(server, seq)[1] == then, seq
    assert last_seq < facts(server)[0]
    checkpoints = [name for name in os.listdir(server.data) if name.startswith("checkpoint-")]
    assert len(checkpoints) > 2, checkpoints
    for name in checkpoints:  # without them it takes longer, and comes to the same
        os.remove(os.path.join(server.data, name))
    assert facts(server, seen[0][0])[1] == seen[0][1]
    assert facts(server, seen[-1][0])[1] == seen[-1][1]
    discard(server)


def one_job_and_one_queue_of_then():
    server = started()
    job = submit(server, "red", gpus=1, name="first")
    seq = server.ask("GET", "/v1/jobs")["seq"]
    server.ask("PUT", f"/v1/jobs/{job}/priority", {"priority": 900})
    then, now = server.ask("GET", f"/v1/jobs/{job}?at={seq}"), server.ask("GET", f"/v1/jobs/{job}")
    assert then["priority"] != 900 and now["priority"] == 900
    assert server.ask("GET", f"/v1/queues/red?at={seq}")["path"] == "red"
    assert server.ask("GET", f"/v1/nodes/n1?at={seq}")["name"] == "n1"
    later = submit(server, "red", gpus=1)
    refused(server, f"/v1/jobs/{later}?at={seq}", 404, "did not live after event")
    rows = subprocess.run([berth_binary(), "jobs", "--at", str(seq), "-o", "csv=id,name"], capture_output=True, text=True,
                          env={**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}",
                               "BERTH_TOKEN_FILE": os.path.join(server.data, "token")})
    assert rows.stdout.split() == ["ID,NAME", f"{job},first"], rows
    discard(server)


def refused(server, path, status, words, headers=None):
    try:
        server.ask("GET", path, headers=headers)
    except Problem as problem:
        assert problem.status == status and words in str(problem.body), problem
        return
    raise AssertionError(f"{path} was answered")


def what_cannot_be_answered_is_refused_with_the_reason():
    server = started()
    submit(server, "red", gpus=1)
    last = server.ask("GET", "/v1/jobs")["seq"]
    refused(server, f"/v1/jobs?at={last + 1000}", 404, f"event {last + 1000} has not happened; the last one is")
    refused(server, "/v1/jobs?at=0", 400, "between 1 and")
    refused(server, "/v1/jobs?at=yesterday", 400, "integer")
    refused(server, f"/v1/jobs?at={last}&finished=true", 400, "live jobs alone")
    refused(server, f"/v1/jobs?at={last}&phase=finished", 400, "live jobs alone")
    refused(server, f"/v1/usage?at={last}", 400, "unknown query parameter")
    discard(server)


def the_past_is_seen_with_the_roles_of_today():
    server = started()
    token = lambda name, role, queue: server.ask("POST", "/v1/tokens", {"name": name, "role": role, "queue": queue,
                                                                          "expires_in_s": 3600})["token"]
    red = {"Authorization": "Bearer " + token("red", "viewer", "red")}
    hers = submit(server, "red", gpus=1, name="of-red")
    other = submit(server, "blue", gpus=1, name="of-blue")
    seq = server.ask("GET", "/v1/jobs")["seq"]
    assert [job["id"] for job in server.ask("GET", f"/v1/jobs?at={seq}", headers=red)["items"]] == [hers]
    assert [queue["path"] for queue in server.ask("GET", f"/v1/queues?at={seq}", headers=red)["items"]] == ["red"]
    refused(server, f"/v1/jobs/{other}?at={seq}", 404, "no such job", red)
    refused(server, f"/v1/nodes?at={seq}", 403, "", red)
    refused(server, f"/v1/queues/blue?at={seq}", 404, "", red)
    server.ask("DELETE", "/v1/tokens/red")
    refused(server, f"/v1/jobs?at={seq}", 401, "", red)  # though it was good then
    discard(server)


def nothing_waits_for_the_past():
    server = started(("--checkpoint-every", "1000000"))
    for _ in range(150):
        submit(server, "red", gpus=1, hold=True)
    last = server.ask("GET", "/v1/jobs")["seq"]
    ending = threading.Event()
    answers = []

    def go_back(first):
        seq = first
        while not ending.is_set():
            seq = seq - 7 if seq > 8 else last  # always back: from the first event again
            try:
                server.ask("GET", f"/v1/jobs?limit=1&at={seq}", timeout=60)
                answers.append(200)
            except Problem as problem:
                answers.append(problem.status)
    threads = [threading.Thread(target=go_back, args=(last - i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    while len(answers) < 40:
        time.sleep(0.05)
    before = len(answers)
    for _ in range(10):
        submit(server, "red", gpus=1, hold=True)
        server.ask("GET", "/v1/jobs?limit=1")
    ending.set()
    for thread in threads:
        thread.join()
    assert set(answers) <= {200, 503}, set(answers)
    assert answers.count(200) > 0 and 503 in answers and before > 0, "more than 16 that wait are told to come again"
    discard(server)


if __name__ == "__main__":
    sys.exit(tally.run([what_was_answered_then_is_answered_again, one_job_and_one_queue_of_then,
                        what_cannot_be_answered_is_refused_with_the_reason, the_past_is_seen_with_the_roles_of_today,
                        nothing_waits_for_the_past]))

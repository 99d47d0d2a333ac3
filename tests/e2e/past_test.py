#!/usr/bin/env python3
"""The state at past moments (?at=SEQ, ?at=TIME) on a real server: what was answered then is answered again, reasons, usage and
bills too, from any checkpoint, after a restart, with the roles of today; what cannot be answered is refused with the reason;
nothing else waits."""
import json
import os
import subprocess
import sys
import threading

import tally
from patience import eventually
from server import Problem, berth_binary, discard, start_with

CONFIG = """cluster: test
queues:
  red: {guaranteed: {gpus: 4}}
  blue: {guaranteed: {gpus: 4}}
"""


def started(flags=("--checkpoint-every", "20")):
    return start_with(CONFIG, flags)


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
    server.wait_phase(ids[0], "finished")
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


PRICES = """currency: EUR
prices:
  - valid_from: 2020-01-01
    gpus: {%s: {floor: %s, burst: 3}}
    lending_credit: 50
"""


def berth(server, *words):
    return subprocess.run([berth_binary(), *words], capture_output=True, text=True,
                          env={**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}",
                               "BERTH_TOKEN_FILE": os.path.join(server.data, "token")})


def apply_prices(server, floor):
    model = server.ask("GET", "/v1/nodes")["items"][0]["gpus"][0]["model"]
    path = os.path.join(server.directory, "prices.yaml")
    with open(path, "w") as file:
        file.write(PRICES % (model, floor))
    run = berth(server, "prices", "apply", path)
    assert run.returncode == 0, run.stderr


TURN = {"queue": "red", "gpus": 0, "hold": True, "command": ["true"]}
BILLS = ["/v1/bill", "/v1/bill?by=job&invoice=lines", "/v1/bill?queue=red&by=kind"]


def through_the_loop(server):
    """Returns when the server has done all that came before: a key that it knows is answered by its loop, in turn, and changes
    nothing."""
    answer = server.ask("POST", "/v1/jobs", TURN, {"Idempotency-Key": "turn"})
    assert answer["repeated"], answer


def told(server, waiting):
    """What is told as of one moment: the moment, the last event until then, and the answers by path. Nothing happens meanwhile."""
    now = lambda: server.ask("GET", "/v1/jobs?limit=1")
    while True:
        through_the_loop(server)  # so what was decided before is durable, too
        before = now()
        answers = {}
        for path in BILLS + ["/v1/usage"]:
            answer = server.ask("GET", path)
            answers[path] = (answer["to"], answer)
        for job in waiting:
            answers[f"/v1/jobs/{job}/why"] = (None, server.ask("GET", f"/v1/jobs/{job}/why"))
        answers["/v1/queues/red/share"] = (None, server.ask("GET", "/v1/queues/red/share"))
        after = now()
        # An event of the same millisecond belongs to that moment, too, and so does one that is decided and not durable yet.
        eventually("the next millisecond", lambda: now()["time"] > after["time"], every_s=0.001)
        through_the_loop(server)
        if before["seq"] == after["seq"] == now()["seq"]:
            break
    return {"seq": after["seq"], "time": after["time"],
            "answers": {path: (moment or after["time"], answer) for path, (moment, answer) in answers.items()}}


def at(server, path, moment):
    return server.ask("GET", f"{path}{'&' if '?' in path else '?'}at={moment}")


def check_told(server, moments):
    for moment in moments:
        assert at(server, "/v1/jobs?limit=1", moment["time"])["seq"] == moment["seq"]
        for path, (when, answer) in moment["answers"].items():
            again = at(server, path, when)
            assert again == answer, (path, when, answer, again)
        for path in BILLS + ["/v1/usage"]:  # and by the number of the event: as of its own time
            by_seq = at(server, path, moment["seq"])
            by_time = at(server, path, by_seq["to"])
            assert by_seq == by_time and by_seq["to"] <= moment["answers"][path][0], (path, by_seq, by_time)


def reasons_usage_and_bills_of_then_are_told_again():
    server = started(("--checkpoint-every", "10"))
    apply_prices(server, 2.5)
    server.ask("POST", "/v1/jobs", TURN, {"Idempotency-Key": "turn"})
    jobs = [submit(server, ("red", "blue")[i % 2], gpus=3, name=f"job-{i}", user=("ada", "bob")[i % 2]) for i in range(4)]
    moments = [told(server, jobs)]
    server.ask("DELETE", f"/v1/jobs/{jobs[0]}")
    server.ask("POST", f"/v1/jobs/{jobs[3]}/hold")
    for _ in range(12):
        submit(server, "red", gpus=9, hold=True)
    moments.append(told(server, jobs[1:]))
    apply_prices(server, 4)
    month = moments[0]["answers"]["/v1/bill"][1]["month"]
    server.ask("POST", f"/v1/months/{month}/corrections", {"queue": "red", "amount_micro": -1_000_000, "reason": "a fault"})
    server.ask("POST", f"/v1/jobs/{jobs[3]}/release")
    server.ask("DELETE", f"/v1/jobs/{jobs[1]}")
    moments.append(told(server, jobs[2:]))
    whys = [moment["answers"].get(f"/v1/jobs/{jobs[3]}/why")[1]["headline"] for moment in moments]
    totals = [moment["answers"]["/v1/bill"][1]["total_micro"] for moment in moments]
    assert len(set(whys)) > 1 and len(set(totals)) == 3, (whys, totals)  # else nothing is shown by what follows
    check_told(server, moments + moments[::-1])
    by_command = json.loads(berth(server, "bill", "-o", "json", "--at", str(moments[0]["answers"]["/v1/bill"][0])).stdout)
    assert by_command == moments[0]["answers"]["/v1/bill"][1]
    assert whys[0].split(".")[0] in berth(server, "why", str(jobs[3]), "--at", moments[0]["time"]).stdout
    assert "ada" in berth(server, "usage", "--at", str(moments[0]["seq"])).stdout
    assert "red" in berth(server, "queues", "--at", moments[0]["time"]).stdout
    assert "n1" in berth(server, "nodes", "--at", moments[0]["time"]).stdout
    assert "leave out --at" in berth(server, "usage", "--by", "job", "--at", "1").stderr
    server.stop()
    assert server.start(), server.tail()
    check_told(server, moments)
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
    refused(server, "/v1/jobs?at=0", 400, "the number of an event, from 1 on, or a time such as")
    refused(server, "/v1/jobs?at=yesterday", 400, "the number of an event")
    refused(server, "/v1/jobs?at=2020-01-01", 404, "the log begins at")
    refused(server, "/v1/bill?at=2999-01-01T00:00Z", 404, "2999-01-01T00:00:00.000Z is still to come; it is")
    refused(server, f"/v1/jobs?at={last}&finished=true", 400, "live jobs alone")
    refused(server, f"/v1/jobs?at={last}&phase=finished", 400, "live jobs alone")
    for path in ("/v1/capacity", "/v1/advice", "/v1/diagnosis", "/v1/events", "/v1/roles", "/v1/prices", "/v1/config"):
        refused(server, f"{path}?at={last}", 400, "at: this route answers of now alone; a past moment is told by")
    refused(server, f"/v1/jobs/{last + 1000}/why?at={last}", 404, "did not live after event")
    refused(server, f"/v1/bill?at={last}", 409, "no prices are in force yet")
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
    refused(server, f"/v1/jobs/{other}/why?at={seq}", 404, "no such job", red)
    assert server.ask("GET", f"/v1/jobs/{hers}/why?at={seq}", headers=red)["id"] == hers
    assert all(row["queue"] == "red" for row in server.ask("GET", f"/v1/usage?at={seq}", headers=red)["items"])
    refused(server, f"/v1/queues/blue/share?at={seq}", 404, "", red)
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
    eventually("forty answers of the past", lambda: len(answers) >= 40)
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
    sys.exit(tally.run([what_was_answered_then_is_answered_again, reasons_usage_and_bills_of_then_are_told_again, one_job_and_one_queue_of_then,
                        what_cannot_be_answered_is_refused_with_the_reason, the_past_is_seen_with_the_roles_of_today,
                        nothing_waits_for_the_past]))

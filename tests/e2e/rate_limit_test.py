#!/usr/bin/env python3
"""A client in a loop is held to its rate, and the others are not; each answer has the id of its request."""
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time

import tally
from patience import eventually, stretched
from server import berth_binary, discard, start_with

CONFIG = "cluster: test\nqueues:\n  red: {guaranteed: {gpus: 4}}\n"


def started(*flags):
    return start_with(CONFIG, flags)


class Token:
    """A client of its own name; its connection stays open."""

    def __init__(self, server, name, queue="", role="member", token=None):
        self.server = server
        self.token = token or server.ask("POST", "/v1/tokens", {"name": name, "role": role, "queue": queue,
                                                                "expires_in_s": 3600})["token"]
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(20))

    def send(self, method, path, body=None, headers=None):
        given = {"Authorization": "Bearer " + self.token, **(headers or {})}
        text = None
        if body is not None:
            text = json.dumps(body)
            given["Content-Type"] = "application/json"
        self.connection.request(method, path, text, given)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.getheader("Connection") == "close":
            self.connection.close()
        return answer, content

    def status(self, method, path):
        return self.send(method, path)[0].status


def berth(server, token, *words):
    environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}", "BERTH_TOKEN": token}
    environment.pop("BERTH_TOKEN_FILE", None)
    return subprocess.run([berth_binary(), *words], capture_output=True, text=True, env=environment, timeout=stretched(120))


def a_client_in_a_loop_is_held_and_the_others_are_not():
    server = started("--rate-limit", "1/20")
    loops, calm = Token(server, "loops", "red"), Token(server, "calm", "red")
    held, asked, began = 0, 0, time.monotonic()
    while held < 100:
        answer, _ = loops.send("GET", "/v1/queues")
        asked += 1
        if answer.status == 429:
            held += 1
            assert int(answer.getheader("Retry-After")) >= 1
    took = time.monotonic() - began
    assert asked - held <= 20 + took + 1, f"{asked - held} were answered within {took:.1f} s"
    assert {calm.status("GET", "/v1/queues") for _ in range(10)} == {200}
    patient = berth(server, loops.token, "queues")  # it waits as it is told, and is answered
    assert patient.returncode == 0, patient.stderr
    discard(server)
    wrong = subprocess.run([berth_binary(), "serve", "--data", "/nonexistent/x", "--rate-limit", "fast"],
                           capture_output=True, text=True, timeout=stretched(60))
    assert wrong.returncode == 2 and "--rate-limit: 'fast'" in wrong.stderr, wrong.stderr


def who_is_not_known_is_held_by_address():
    server = started("--rate-limit-unknown", "1/20")
    nobody = Token(server, "", token="0123456789abcdef" * 4)
    answers = [nobody.status("GET", "/v1/jobs") for _ in range(100)]
    assert answers[0] == 401 and answers.count(429) > 50, answers
    assert Token(server, "known", "red").status("GET", "/v1/queues") == 200
    discard(server)


def a_subject_writes_so_much_a_day_and_no_more():
    server = started("--day-limit", "1MiB")
    busy, calm = Token(server, "busy", "red"), Token(server, "calm", "red")
    job = {"queue": "red", "cpus": 1, "command": ["true"], "hold": True}
    one = json.loads(busy.send("POST", "/v1/jobs", job)[1])["id"]
    array = {**job, "kind": "array", "array": {"size": 100_000}}
    answer, content = busy.send("POST", "/v1/jobs", array)  # each element is an event
    assert answer.status == 403 and b"--day-limit" in content and b"token:busy" in content, content
    once = [busy.send("POST", "/v1/jobs", job, {"Idempotency-Key": "once"})[0].status for _ in range(1_000)]
    assert set(once) <= {200, 201}, set(once)  # what writes nothing costs nothing
    taken = 0
    while (answer := busy.send("POST", "/v1/jobs", job))[0].status == 201 and taken < 2_000:
        taken += 1
    assert answer[0].status == 403 and 100 < taken < 1_000, (taken, answer[1])
    assert b"midnight UTC" in answer[1] and b"1MiB" in answer[1], answer[1]
    assert busy.status("DELETE", f"/v1/jobs/{one}") in (200, 202, 204), "what ends a job is taken"
    # What is left of the day is less than a job, and a few small changes.
    assert 403 in [busy.status("POST", f"/v1/jobs/{one + 1}/{verb}") for verb in ("release", "hold") * 3]
    assert calm.send("POST", "/v1/jobs", job)[0].status == 201
    assert server.tail().count("requests of token:busy are refused until midnight UTC") == 1, server.tail()
    discard(server)
    wrong = subprocess.run([berth_binary(), "serve", "--data", "/nonexistent/x", "--day-limit", "much"],
                           capture_output=True, text=True, timeout=stretched(60))
    assert wrong.returncode == 2 and "--day-limit: " in wrong.stderr, wrong.stderr


class Follower(threading.Thread):
    """A stream of all events from the first one; counts those that came."""

    def __init__(self, server, token):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(120))
        self.connection.request("GET", "/v1/events?from=1", headers={"Authorization": "Bearer " + token,
                                                                     "Accept": "text/event-stream"})
        self.socket = self.connection.sock  # the answer takes it over
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.status
        self.events = 0
        self.start()

    def run(self):
        try:
            for line in self.answer:
                self.events += line.startswith(b"data:")
        except (OSError, AttributeError, ValueError):
            pass  # the test has ended it

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)


def live_streams_of_one_do_not_keep_the_stream_of_another_waiting():
    server = started()
    many = Token(server, "collector", role="auditor")
    other = Token(server, "other", role="auditor")
    writer = Token(server, "writer", "red")
    crowd = [Follower(server, many.token) for _ in range(50)]
    job = {"queue": "red", "cpus": 1, "command": ["true"], "hold": True}
    for _ in range(300):
        assert writer.send("POST", "/v1/jobs", job)[0].status == 201
    late = Follower(server, other.token)  # catches up while the others are live and more comes
    for _ in range(300):
        assert writer.send("POST", "/v1/jobs", job)[0].status == 201
    eventually(lambda: f"the late stream has every event, but it has {late.events}", lambda: late.events >= 600)
    eventually(lambda: f"so has each of the crowd, but they have {[one.events for one in crowd]}",
               lambda: min(one.events for one in crowd) >= 600)
    for one in (late, *crowd):
        one.end()
    discard(server)


def each_answer_has_the_id_of_its_request():
    server = started()
    red = Token(server, "red-ci", "red")
    assert red.send("GET", "/v1/queues", headers={"X-Request-Id": "ticket-7"})[0].getheader("X-Request-Id") == "ticket-7"
    made = {red.send("GET", path)[0].getheader("X-Request-Id") for path in ("/v1/queues", "/v1/nodes", "/nowhere", "/v1/queues")}
    assert len(made) == 4 and None not in made, made
    longer = red.send("GET", "/v1/queues", headers={"X-Request-Id": "x" * 65})[0].getheader("X-Request-Id")
    assert longer != "x" * 65, longer
    discard(server)


def no_token_is_sent_in_the_clear():
    done = subprocess.run([berth_binary(), "queues"], capture_output=True, text=True, timeout=stretched(60),
                          env={**os.environ, "BERTH_SERVER": "http://192.0.2.1:6380", "BERTH_TOKEN": "hush-hush-hush-hush"})
    assert done.returncode == 2 and "unencrypted" in done.stderr and "hush" not in done.stderr, done.stderr


def main():
    return tally.run([a_client_in_a_loop_is_held_and_the_others_are_not, who_is_not_known_is_held_by_address,
                      a_subject_writes_so_much_a_day_and_no_more,
                      live_streams_of_one_do_not_keep_the_stream_of_another_waiting,
                      each_answer_has_the_id_of_its_request, no_token_is_sent_in_the_clear])


if __name__ == "__main__":
    sys.exit(main())

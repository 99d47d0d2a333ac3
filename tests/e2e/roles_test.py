#!/usr/bin/env python3
"""Tokens and roles on a real server: created, limited to a queue, kept over a restart, expired, revoked; and two tenants
of whom neither reads anything that the other wrote, by any route."""
import os
import re
import socket
import subprocess
import sys

import tally
from patience import eventually, read_until, stretched
from server import Problem, berth_binary, discard, start_with

CONFIG = "cluster: test\nqueues:\n  red: {guaranteed: {gpus: 4}}\n  blue: {guaranteed: {gpus: 4}}\n"


class Tenant:
    def __init__(self, server, name, queue, role="member", seconds=3600):
        self.server, self.name, self.queue = server, name, queue
        self.token = server.ask("POST", "/v1/tokens", {"name": name, "role": role, "queue": queue,
                                                       "expires_in_s": seconds})["token"]

    def ask(self, method, path, body=None):
        return self.server.ask(method, path, body, {"Authorization": "Bearer " + self.token})

    def status(self, method, path, body=None):
        try:
            self.ask(method, path, body)
            return 200
        except Problem as problem:
            return problem.status

    def readable(self, path):
        """The bytes of an answer, a refusal as well; a stream is read for a moment."""
        longest = stretched(2 if "follow=true" in path else 60)
        run = subprocess.run(["curl", "-s", "-i", "-m", str(longest), "-H", "Authorization: Bearer " + self.token,
                              f"http://127.0.0.1:{self.server.port}{path}"], capture_output=True)
        return run.stdout.decode(errors="replace")


def started():
    return start_with(CONFIG)


def a_token_reaches_its_queue_and_its_own_jobs_alone():
    server = started()
    red, blue = Tenant(server, "red-ci", "red"), Tenant(server, "blue-ci", "blue")
    job = red.ask("POST", "/v1/jobs", {"gpus": 1, "command": ["sleep", "600"]})["id"]  # red is the one queue that it has
    assert red.ask("GET", f"/v1/jobs/{job}")["queue"] == "red"
    assert red.ask("GET", f"/v1/jobs/{job}")["user"] == "red-ci"
    assert blue.status("POST", "/v1/jobs", {"queue": "red", "gpus": 1, "command": ["true"]}) == 403
    assert red.status("POST", "/v1/jobs", {"queue": "red", "user": "blue-ci", "gpus": 1, "command": ["true"]}) == 403
    for method, path, body in [("GET", "", None), ("GET", "/why", None), ("GET", "/logs", None), ("DELETE", "", None),
                               ("POST", "/hold", None), ("PUT", "/priority", {"priority": 1}),
                               ("POST", "/signal", {"signal": 9}), ("POST", "/move", {}),
                               ("POST", "/checkpoint", {"attempt": 1, "step": 1})]:
        assert blue.status(method, f"/v1/jobs/{job}{path}", body) == 404, (method, path)
    for path in ["/v1/tokens", "/v1/config", "/v1/events", "/v1/nodes", "/v1/snapshot", "/metrics"]:
        assert red.status("GET", path) == 403, path
    assert red.status("PUT", "/v1/config", {"queues": {"red": None}}) == 403
    assert red.status("POST", "/v1/tokens", {"name": "more", "role": "admin", "expires_in_s": 60}) == 403
    assert red.status("DELETE", f"/v1/jobs/{job}") == 200
    discard(server)


def a_revoked_token_ends_what_it_has_begun():
    server = started()
    auditor = Tenant(server, "aud", "", role="auditor")
    admin = Tenant(server, "adm", "", role="admin")
    stream = follow(server, auditor)
    assert b"token-created" in read_until(stream, b"token-created")[0]
    slow = socket.create_connection(("127.0.0.1", server.port))
    body = b'{"name":"backdoor","role":"admin","expires_in_s":3600}'
    slow.sendall(f"POST /v1/tokens HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin.token}\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
    eventually("the head has come, and its token was taken", lambda: any(
        row["name"] == "adm" and "last_used" in row for row in server.ask("GET", "/v1/tokens")["items"]))
    for name in ("aud", "adm"):
        server.ask("DELETE", f"/v1/tokens/{name}")
    slow.sendall(body[5:])
    assert slow.recv(4096).startswith(b"HTTP/1.1 401"), "a body that came late was taken"
    assert [row["name"] for row in server.ask("GET", "/v1/tokens")["items"]] == []
    server.ask("POST", "/v1/jobs", {"queue": "red", "gpus": 1, "command": ["echo", "topsecret"]})
    seen, ended = read_until(stream, b"topsecret")
    assert ended and b"topsecret" not in seen, "a stream went on"
    discard(server)


def follow(server, tenant):
    """A connection on which the events come."""
    stream = socket.create_connection(("127.0.0.1", server.port))
    stream.sendall(f"GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tenant.token}\r\n\r\n".encode())
    return stream


def what_others_run_cannot_be_asked_for():
    server = started()
    red, blue = Tenant(server, "red-ci", "red"), Tenant(server, "blue-ci", "blue")
    job = blue.ask("POST", "/v1/jobs", {"gpus": 1, "command": ["true"]})["id"]
    own = red.ask("POST", "/v1/jobs", {"gpus": 1, "command": ["true"]})["id"]
    for one in (job, own):
        server.wait_phase(one, "finished")

    def said(path, body):
        try:
            return 200, red.ask("POST", path, body)
        except Problem as problem:
            return problem.status, problem.body
    for path in ("/v1/jobs", "/v1/forecast"):
        answers = [said(path, {"gpus": 1, "command": ["true"], "afterok": [one]})
                   for one in (job, 999)]
        assert answers[0][0] == answers[1][0] == 400, answers
        assert answers[0][1].replace(f"job {job} ", "job 999 ") == answers[1][1], answers
        assert said(path, {"gpus": 1, "command": ["true"], "afterok": [own]})[0] == 200
    for path in (f"/v1/jobs?parent={job}", "/v1/jobs?queue=blue", "/v1/jobs?parent=999", "/v1/jobs?queue=nowhere"):
        assert red.status("GET", path) == 404, path
    assert said("/v1/jobs", {"queue": "blua", "gpus": 1, "command": ["true"]})[0] == 403
    rows = red.ask("GET", "/v1/usage")["items"]
    assert {row["user"] for row in rows} <= {"red-ci"}, rows
    server.ask("POST", "/v1/tokens", {"name": "short", "role": "viewer", "expires_in_s": 1})
    server.pass_time(2)
    server.ask("POST", "/v1/tokens", {"name": "short", "role": "viewer", "expires_in_s": 60})  # the old one has ended
    try:
        server.ask("POST", "/v1/tokens", {"name": "x", "user": "admin", "role": "member", "queue": "red", "expires_in_s": 60})
        raise AssertionError("a member took the name of the admin")
    except Problem as problem:
        assert problem.status == 400, problem
    discard(server)


def tokens_outlive_the_server_and_end_when_they_should():
    server = started()
    kept, gone, short = Tenant(server, "kept", "red"), Tenant(server, "gone", "red"), Tenant(server, "short", "red", seconds=5)
    assert server.ask("DELETE", "/v1/tokens/gone")["revoked"]
    assert gone.status("GET", "/v1/identity") == 401
    for end in (server.kill, server.stop):  # once from the log, once from a checkpoint
        end()
        assert server.start(), server.tail()
        assert kept.ask("GET", "/v1/identity") == {"subject": "token:kept", "user": "kept", "authenticated_by": "token",
                                                     "connection": "plain",
                                                   "roles": [{"role": "member", "queue": "red"}]}
        assert gone.status("GET", "/v1/identity") == 401
    server.pass_time(6)
    assert short.status("GET", "/v1/identity") == 401
    listed = {row["name"]: row for row in server.ask("GET", "/v1/tokens")["items"]}
    assert set(listed) == {"kept", "short"} and listed["short"]["expired"] and not listed["kept"]["expired"]
    server.stop()
    data = b"".join(open(os.path.join(server.data, name), "rb").read() for name in os.listdir(server.data)
                    if os.path.isfile(os.path.join(server.data, name)))
    assert kept.token.encode() not in data and kept.token not in server.tail(), "a token is stored in the clear"
    verified = subprocess.run([berth_binary(), "verify", server.data], capture_output=True, text=True)
    assert verified.returncode == 0, verified
    discard(server)


def bad_requests_for_tokens_are_told():
    server = started()
    Tenant(server, "one", "red")
    for body, status in [({"name": "one", "role": "viewer", "expires_in_s": 60}, 409),
                         ({"name": "two", "role": "king", "expires_in_s": 60}, 400),
                         ({"name": "../two", "role": "viewer", "expires_in_s": 60}, 400),
                         ({"name": "two", "role": "viewer", "expires_in_s": 0}, 400),
                         ({"name": "two", "role": "viewer", "expires_in_s": 10**18}, 400),
                         ({"name": "two", "role": "viewer", "queue": "nowhere", "expires_in_s": 60}, 404),
                         ({"name": "two", "role": "viewer", "more": 1, "expires_in_s": 60}, 400)]:
        try:
            server.ask("POST", "/v1/tokens", body)
            raise AssertionError(body)
        except Problem as problem:
            assert problem.status == status, (body, problem)
    discard(server)


def neither_tenant_reads_what_the_other_wrote():
    server = started()
    tenants = {name: Tenant(server, name + "-ci", name) for name in ("red", "blue")}
    jobs = {}
    for name, tenant in tenants.items():
        secret = f"secret-of-{name}"
        for gpus in (1, 4, 4):  # the last waits
            jobs[name] = tenant.ask("POST", "/v1/jobs", {
                "name": secret, "queue": name, "gpus": gpus, "labels": {secret: secret}, "comment": secret,
                "env": {"SECRET": secret}, "command": ["bash", "-c", f"echo {secret}; sleep 600"]})["id"]
        failed = tenant.ask("POST", "/v1/jobs", {"name": secret, "queue": name, "gpus": 0, "command": ["bash", "-c", "exit 3", secret]})["id"]
        server.wait_phase(failed, "finished")
        # Of the two that fit, one has said it; of the third there is a verdict.
        eventually("a job has said it", lambda: any(
            secret in tenant.readable(f"/v1/jobs/{job}/logs") for job in range(jobs[name] - 2, jobs[name])))
        eventually("the last waits", lambda: server.job(jobs[name]).get("reason"))
    document = server.ask("GET", "/openapi.json")
    tried = 0
    for mine, theirs in (("red", "blue"), ("blue", "red")):
        for pattern, methods in document["paths"].items():
            if "get" not in methods:
                continue
            for job in range(1, jobs["blue"] + 2):
                path = re.sub(r"\{id\}", str(job), pattern)
                path = path.replace("{path}", theirs).replace("{name}", "n1")
                for suffix in ("", "?finished=true") if pattern == "/v1/jobs" else ("",):
                    answer = tenants[mine].readable(path + suffix)
                    tried += 1
                    assert f"secret-of-{theirs}" not in answer, (mine, path, answer[:2000])
                if "{id}" not in pattern:
                    break
        own = tenants[mine].readable("/v1/jobs")
        assert f"secret-of-{mine}" in own, own
    assert tried > 60, tried
    discard(server)


def environments_are_read_by_readers_of_logs_and_stand_in_no_event():
    server = started()
    owner, lead = Tenant(server, "red-ci", "red"), Tenant(server, "red-lead", "red", "lead")
    job = owner.ask("POST", "/v1/jobs", {"gpus": 1, "env": {"KEY": "topsecret"}, "command": ["sleep", "600"]})["id"]
    for reader in (owner, lead):
        assert "topsecret" in reader.readable(f"/v1/jobs/{job}"), reader.name
    for role in ("viewer", "org-admin", "operator", "auditor"):
        other = Tenant(server, "one-" + role, "" if role in ("operator", "auditor") else "red", role)
        view = other.ask("GET", f"/v1/jobs/{job}")
        assert view["spec"]["env"] == {"KEY": "(hidden)"}, (role, view["spec"])
    reader = Tenant(server, "aud-all", "", "auditor")
    for path in ("/v1/events?limit=1000", "/v1/snapshot"):
        told = reader.readable(path)
        assert '"KEY"' in told and "topsecret" not in told, (path, told[:2000])
    told, ended = read_until(follow(server, reader), b"aud-all")  # the last event of all
    assert not ended and b'"KEY"' in told and b"topsecret" not in told, told[:2000]
    assert server.ask("GET", f"/v1/jobs/{job}")["spec"]["env"] == {"KEY": "topsecret"}
    discard(server)


def an_admin_of_one_queue_submits_as_itself_alone():
    server = started()
    admin = Tenant(server, "red-adm", "red", "admin")
    for user in ("root", "admin", "blue-ci"):
        assert admin.status("POST", "/v1/jobs", {"queue": "red", "user": user, "gpus": 1, "command": ["true"]}) == 403, user
    job = admin.ask("POST", "/v1/jobs", {"queue": "red", "gpus": 1, "command": ["true"]})["id"]
    assert admin.ask("GET", f"/v1/jobs/{job}")["user"] == "red-adm"
    assert server.ask("POST", "/v1/jobs", {"queue": "red", "user": "blue-ci", "gpus": 1, "command": ["true"]})["id"]
    discard(server)


def a_granted_role_goes_with_its_token():
    server = started()
    Tenant(server, "ci", "red")
    server.ask("POST", "/v1/roles", {"subject": "token:ci", "role": "org-admin", "queue": "red"})
    server.ask("DELETE", "/v1/tokens/ci")
    again = Tenant(server, "ci", "blue", "viewer")
    roles = [(one["role"], one["queue"]) for one in again.ask("GET", "/v1/access")["bindings"]]
    assert roles == [("viewer", "blue")], roles
    assert server.ask("GET", "/v1/roles")["items"] == []
    discard(server)


def what_has_finished_in_a_queue_is_no_other_queues():
    server = started()
    blue, floor = {"guaranteed": {"gpus": 4}}, {"guaranteed": {"gpus": 4}}

    def apply(**queues):
        try:
            server.ask("PUT", "/v1/config", {"cluster": "test", "queues": {"blue": blue, **queues}})
            return ""
        except Problem as problem:
            assert problem.status == 409, problem
            return str(problem)
    red = Tenant(server, "red-ci", "red")
    job = red.ask("POST", "/v1/jobs", {"gpus": 1, "command": ["echo", "secret-of-red"]})["id"]
    server.wait_phase(job, "finished")
    assert apply(crimson={**floor, "moved_from": "red"}) == ""
    assert "secret-of-red" in red.readable(f"/v1/jobs/{job}/logs")
    assert [one["id"] for one in red.ask("GET", "/v1/jobs?finished=true")["items"]] == [job]
    assert "former name of queue 'crimson'" in apply(crimson=floor, red={})
    assert apply() == ""
    assert red.status("GET", f"/v1/jobs/{job}") == 401  # its token is gone with the queue
    assert "returns: true" in apply(crimson={})
    assert "former name" in apply(red={})
    assert apply(crimson={"returns": True}) == ""
    discard(server)


def no_role_is_granted_to_a_token_that_does_not_exist():
    server = started()
    try:
        server.ask("POST", "/v1/roles", {"subject": "token:later", "role": "org-admin", "queue": "red"})
        raise AssertionError("it is granted")
    except Problem as problem:
        assert problem.status == 404 and "create it first" in str(problem), problem
    discard(server)


def the_token_of_the_data_directory_is_not_said_to_be_ended():
    server = started()
    try:
        server.ask("POST", "/v1/subjects/block", {"subject": "token:admin"})
        raise AssertionError("its access is said to be ended")
    except Problem as problem:
        assert problem.status == 400, problem
    discard(server)


def a_reason_breaks_no_glass_where_a_role_covers_the_log():
    server = started()
    red, operator = Tenant(server, "red-ci", "red"), Tenant(server, "ops", "", "operator")
    job = red.ask("POST", "/v1/jobs", {"gpus": 1, "command": ["sleep", "600"]})["id"]
    server.wait_phase(job, "running")
    red.readable(f"/v1/jobs/{job}/logs?break_glass=mine")
    server.ask("GET", f"/v1/jobs/{job}", None)
    assert "break_glass" not in red.ask("GET", f"/v1/jobs/{job}")
    operator.readable(f"/v1/jobs/{job}/logs?break_glass=pager")
    assert [one["reason"] for one in red.ask("GET", f"/v1/jobs/{job}")["break_glass"]] == ["pager"]
    discard(server)


def a_bill_does_not_tell_which_queues_there_are():
    server = started()
    red = Tenant(server, "red-ci", "red", "finance")
    for path in ("/v1/bill", "/v1/jobs"):
        assert red.status("GET", path + "?queue=blue") == red.status("GET", path + "?queue=none") == 404, path
    discard(server)


def a_denial_names_the_queue_that_was_asked_for():
    server = started()
    red, of_red = Tenant(server, "red-ci", "red"), Tenant(server, "red-aud", "red", "auditor")
    assert red.status("POST", "/v1/roles", {"subject": "token:x", "role": "viewer", "queue": "red"}) == 403
    assert red.status("PUT", "/v1/rules?queue=red", {"rules": []}) == 403
    assert red.status("POST", "/v1/roles", {"subject": "token:x", "role": "viewer", "queue": "blue"}) == 403
    server.stop()  # writes what was counted
    assert server.start(), server.tail()
    denied = {(row["verb"], row["queue"]) for row in of_red.ask("GET", "/v1/audit?denied=true")["items"]}
    assert denied == {("manage-roles", "red"), ("manage-rules", "red")}, denied
    discard(server)


def a_flood_of_wrong_tokens_leaves_the_health_check_alone():
    server = start_with(CONFIG, ("--rate-limit-unknown", "2/5"))
    codes = []
    for _ in range(12):
        try:
            server.ask("GET", "/v1/jobs", headers={"Authorization": "Bearer wrong"})
        except Problem as problem:
            codes.append(problem.status)
    assert 429 in codes, codes
    assert server.ask("GET", "/healthz")["status"] == "ok"
    discard(server)


def main():
    cases = [a_token_reaches_its_queue_and_its_own_jobs_alone, a_revoked_token_ends_what_it_has_begun,
             what_others_run_cannot_be_asked_for, tokens_outlive_the_server_and_end_when_they_should,
             bad_requests_for_tokens_are_told, neither_tenant_reads_what_the_other_wrote,
             environments_are_read_by_readers_of_logs_and_stand_in_no_event, an_admin_of_one_queue_submits_as_itself_alone,
             a_granted_role_goes_with_its_token, what_has_finished_in_a_queue_is_no_other_queues,
             no_role_is_granted_to_a_token_that_does_not_exist, the_token_of_the_data_directory_is_not_said_to_be_ended,
             a_reason_breaks_no_glass_where_a_role_covers_the_log, a_bill_does_not_tell_which_queues_there_are,
             a_denial_names_the_queue_that_was_asked_for, a_flood_of_wrong_tokens_leaves_the_health_check_alone]
    return tally.run(cases)


if __name__ == "__main__":
    sys.exit(main())

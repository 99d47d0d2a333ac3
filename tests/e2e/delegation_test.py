#!/usr/bin/env python3
"""An org-admin runs the queues below her own, on a real server: limits by command, leased, looked at first and undone;
roles that she grants and takes back; a subject whose access ends at once; and what a file that is applied does to that."""
import json
import os
import socket
import subprocess
import sys

import tally
from patience import eventually, read_until
from server import Problem, berth_binary, discard, start_with

CONFIG = """cluster: test
queues:
  research:
    guaranteed: {gpus: 6}
    max: {gpus: 8}
    queues:
      nlp: {guaranteed: {gpus: 4}}
      vision: {guaranteed: {gpus: 1}}
  other: {}
"""


def started():
    return start_with(CONFIG)


def token_of(server, name, role, queue, user=None):
    return server.ask("POST", "/v1/tokens", {"name": name, "role": role, "queue": queue, "user": user or name,
                                             "expires_in_s": 3600})["token"]


class Cli:
    def __init__(self, server, token):
        self.environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}", "BERTH_TOKEN": token}

    def __call__(self, *words, code=0):
        run = subprocess.run([berth_binary(), *words], env=self.environment, capture_output=True, text=True)
        assert run.returncode == code, (words, run)
        return run.stdout if code == 0 else run.stderr

    def json(self, *words):
        return json.loads(self(words[0], "-o", "json", *words[1:]))


def guaranteed(cli, queue):
    return cli.json("queues", queue)["guaranteed"].get("gpus")


def phase(cli, job):
    return cli.json("job", str(job))["phase"]


def an_org_admin_changes_limits_below_her_own_queue_and_nothing_else():
    server = started()
    ada = Cli(server, token_of(server, "ada", "org-admin", "research"))
    told = ada("queue", "set", "research/nlp", "guaranteed.gpus=+1", "weight=3")
    assert "guaranteed.gpus 4 -> 5" in told and "weight 1 -> 3" in told, told
    assert guaranteed(ada, "research/nlp") == 5
    refused = ada("queue", "set", "research/nlp", "guaranteed.gpus=+1", code=4)
    assert "would be guaranteed 7 gpus (research/nlp 6, research/vision 1)" in refused and "1 too many" in refused, refused
    assert "above the 8 of research" in ada("queue", "set", "research/nlp", "max.gpus=9", code=4)
    assert "admin" in ada("queue", "set", "research", "guaranteed.gpus=+1", code=6)
    assert "no such queue 'other'" in ada("queue", "set", "other", "weight=2", code=3)
    assert "did you mean 'weight'" in ada("queue", "set", "research/nlp", "wieght=2", code=2)
    assert "operator's to give" in ada("queue", "set", "research/nlp", "eviction.min_runtime=2h", code=6)
    changes = ada.json("queue", "changes", "research/nlp")
    assert [change["by"] for change in changes] == ["token:ada"], changes
    ada("queue", "undo", "research/nlp")
    assert guaranteed(ada, "research/nlp") == 4
    assert "nothing to undo" in ada("queue", "undo", "research/nlp", code=4)
    discard(server)


def a_change_is_in_force_in_the_next_cycle_and_can_be_looked_at_before():
    server = started()
    admin, ada = Cli(server, server.token), Cli(server, token_of(server, "ada", "org-admin", "research"))
    admin("queue", "set", "research/nlp", "max.gpus=4")
    runs = [ada.json("submit", "--queue", "research/nlp", "--gpus", "2", "--", "sleep", "600")["id"] for _ in range(2)]
    waits = ada.json("submit", "--queue", "research/nlp", "--gpus", "2", "--", "sleep", "600")["id"]
    eventually("two run", lambda: all(phase(ada, job) == "running" for job in runs))
    looked = ada("queue", "set", "research/nlp", "max.gpus=6", "--dry-run")
    assert f"would start now, or get their places: job {waits}" in looked, looked
    assert phase(ada, waits) == "pending"
    shrink = ada.json("queue", "set", "research/nlp", "guaranteed.gpus=2", "--dry-run")
    assert shrink["become_borrowed"] == {"jobs": [runs[1]], "not_shown": 0}, shrink
    assert guaranteed(ada, "research/nlp") == 4
    ada("queue", "set", "research/nlp", "max.gpus=6")
    eventually("the third starts when the ceiling is raised", lambda: phase(ada, waits) == "running")
    undo = ada("queue", "undo", "research/nlp", "--dry-run")
    assert "more runs than the new max" in undo, undo
    discard(server)


def a_lease_ends_by_itself_also_over_a_restart():
    server = started()
    ada = Cli(server, token_of(server, "ada", "org-admin", "research"))
    ada("queue", "set", "research/nlp", "guaranteed.gpus=+1", "--until", "in 1m")
    assert guaranteed(ada, "research/nlp") == 5
    server.kill()
    assert server.start(), server.tail()
    ada.environment["BERTH_SERVER"] = f"http://127.0.0.1:{server.port}"
    assert guaranteed(ada, "research/nlp") == 5
    server.pass_time(60)
    eventually("the lease ends", lambda: guaranteed(ada, "research/nlp") == 4)
    kinds = [event["kind"] for event in server.all_events()]
    assert kinds.count("queue-changed") == kinds.count("queue-change-ended") == 1, kinds
    server.stop()
    verified = subprocess.run([berth_binary(), "verify", server.data], capture_output=True, text=True)
    assert verified.returncode == 0, verified
    discard(server)


def of_two_who_change_at_once_the_second_is_told():
    server = started()
    ada, bob = (Cli(server, token_of(server, name, "org-admin", "research")) for name in ("ada", "bob"))
    seen = ada.json("queue", "set", "research/nlp", "guaranteed.gpus=5", "--dry-run")["revision"]
    ada("queue", "set", "research/nlp", "guaranteed.gpus=5", "--if-revision", seen)
    told = bob("queue", "set", "research/nlp", "guaranteed.gpus=3", "--if-revision", seen, code=4)
    assert "token:ada set guaranteed.gpus=5" in told, told
    assert guaranteed(ada, "research/nlp") == 5
    clients = [subprocess.Popen([berth_binary(), "queue", "set", "research/vision", "weight=+1"], env=one.environment,
                                stdout=subprocess.DEVNULL) for one in (ada, bob) for _ in range(4)]
    assert all(client.wait() == 0 for client in clients)
    assert ada.json("queues", "research/vision")["weight"] == 9, "an addition is lost"
    discard(server)


def a_file_takes_over_what_it_changes_and_a_difference_tells_it():
    server = started()
    admin, ada = Cli(server, server.token), Cli(server, token_of(server, "ada", "org-admin", "research"))
    ada("queue", "set", "research/nlp", "guaranteed.gpus=5", "weight=3")
    kept = admin("diff", "-f", server.config)
    assert "set by command, and stays in force over the file: research/nlp.guaranteed.gpus 5 by token:ada" in kept, kept
    assert "# in force over this, by command: research/nlp.weight 3 by token:ada" in admin("config")
    assert "nothing changes" in admin("apply", "-f", server.config)
    with open(server.config, "w") as file:
        file.write(CONFIG.replace("nlp: {", "nlp: {weight: 2, "))
    difference = subprocess.run([berth_binary(), "diff", "-f", server.config], env=admin.environment, capture_output=True,
                                text=True).stdout
    assert "the file takes over what was set by command: research/nlp.weight 3 by token:ada; then 2" in difference, difference
    admin("apply", "-f", server.config)
    queue = ada.json("queues", "research/nlp")
    assert (queue["weight"], queue["guaranteed"]["gpus"]) == (2, 5), queue
    with open(server.config, "w") as file:
        file.write(CONFIG.replace("gpus: 6", "gpus: 5"))
    assert "berth queue undo" in admin("apply", "-f", server.config, code=4)
    discard(server)


def roles_are_granted_no_further_than_the_own_role_and_queue():
    server = started()
    admin, ada = Cli(server, server.token), Cli(server, token_of(server, "ada", "org-admin", "research"))
    zoe = Cli(server, token_of(server, "zoe", "viewer", "research/vision"))
    lead = Cli(server, token_of(server, "leo", "lead", "research/nlp"))
    assert "is member at research/nlp" in ada("grant", "token:zoe", "member", "research/nlp")
    zoe("submit", "--queue", "research/nlp", "--gpus", "0", "--", "true")
    lead("grant", "user:eve", "member", "research/nlp")
    assert "lead at research/nlp, which may not grant or revoke the role org-admin" in lead(
        "grant", "user:eve", "org-admin", "research/nlp", code=6)
    ada("grant", "user:eve", "member", "other", code=6)
    ada("grant", "user:eve", "operator", "research", code=6)
    assert "token:zoe" in ada("roles") and "command" in ada("roles")
    ada("revoke", "token:zoe", "member", "research/nlp")
    zoe("submit", "--queue", "research/nlp", "--gpus", "0", "--", "true", code=6)
    assert "no role is granted" in ada("revoke", "token:zoe", "member", "research/nlp", code=3)
    admin("grant", "user:root2", "admin", "/")
    assert "nobody able to administer" in admin("revoke", "user:root2", "admin", "/", code=4)
    discard(server)


def follow(server, token):
    stream = socket.create_connection(("127.0.0.1", server.port))
    stream.sendall(f"GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    read_until(stream, b"token-created")
    return stream


def a_stream_ends_when_its_owner_loses_the_role():
    server = started()
    admin = Cli(server, server.token)
    token = token_of(server, "aud", "viewer", "other")
    admin("grant", "token:aud", "auditor", "/")
    stream = follow(server, token)
    admin("revoke", "token:aud", "auditor", "/")
    admin("submit", "--queue", "other", "--gpus", "0", "--name", "topsecret", "--", "true")
    seen, ended = read_until(stream, b"topsecret")
    assert ended and b"topsecret" not in seen, "a stream went on without its role"
    discard(server)


def all_access_of_a_subject_ends_at_once_and_is_lifted_again():
    server = started()
    admin = Cli(server, server.token)
    token, other = (token_of(server, name, "auditor", "", user="ada") for name in ("one", "two"))
    stream = follow(server, token)
    assert "is ended" in admin("revoke", "--subject", "user:ada")
    admin("submit", "--queue", "other", "--gpus", "0", "--name", "topsecret", "--", "true")
    seen, ended = read_until(stream, b"topsecret")
    assert ended and b"topsecret" not in seen, "a stream went on"
    for one in (token, other):
        Cli(server, one)("whoami", code=6)
    assert server.ask("GET", "/v1/roles")["blocked"][0]["subject"] == "user:ada"
    server.kill()
    assert server.start(), server.tail()
    Cli(server, token)("whoami", code=6)
    admin = Cli(server, server.token)
    admin("revoke", "--subject", "user:ada", "--lift")
    Cli(server, other)("whoami")
    try:
        server.ask("POST", "/v1/subjects/block", {"subject": "ada"})
        raise AssertionError("a name without a kind is no subject")
    except Problem as problem:
        assert problem.status == 400, problem
    discard(server)


if __name__ == "__main__":
    sys.exit(tally.run([an_org_admin_changes_limits_below_her_own_queue_and_nothing_else,
                        a_change_is_in_force_in_the_next_cycle_and_can_be_looked_at_before,
                        a_lease_ends_by_itself_also_over_a_restart,
                        of_two_who_change_at_once_the_second_is_told,
                        a_file_takes_over_what_it_changes_and_a_difference_tells_it,
                        roles_are_granted_no_further_than_the_own_role_and_queue,
                        a_stream_ends_when_its_owner_loses_the_role,
                        all_access_of_a_subject_ends_at_once_and_is_lifted_again]))

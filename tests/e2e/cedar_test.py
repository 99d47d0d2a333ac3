#!/usr/bin/env python3
"""Roles against an independent reference: Cedar (PyPI's cedarpy) decides by policies that are made of the table in
docs/roles.md, and not of the code. Every verb, role, relation of queues and owner is asked of both.

Needs packages of PyPI: pypi.py."""
import http.client
import itertools
import json
import os
import re
import shutil
import sys
import urllib.parse

import pypi
import tally
from patience import stretched
from server import ROOT, Server, fresh_directory

REQUIREMENTS = "requirements-identity.txt"
QUEUES = ["research", "research/nlp", "research/nlp/train", "research/nlp/train/deep", "research/nlp2", "research/vision", "sales", "sales/nlp"]
BOUND_AT = "research/nlp"
# How the queue of the object lies to the one at which the role is.
RELATIONS = {"own": "research/nlp", "child": "research/nlp/train", "grandchild": "research/nlp/train/deep", "parent": "research",
             "root": "", "same team": "research/vision", "a name that begins alike": "research/nlp2", "other team": "sales",
             "the same name elsewhere": "sales/nlp"}


def table():
    """{verb: {role: reach}} as the documentation has it."""
    with open(os.path.join(ROOT, "docs", "roles.md")) as file:
        lines = re.search(r"<!-- roles -->\n(.*?)<!-- /roles -->", file.read(), re.S).group(1).strip().splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    roles = rows[0][2:]
    return {row[0]: dict(zip(roles, row[2:])) for row in rows[2:]}


def queue_entity(path):
    return {"type": "Queue", "id": path or "/"}


def entities(objects):
    """The tree of queues, and the objects that are asked about, each in its queue."""
    found = [{"uid": queue_entity(""), "attrs": {}, "parents": []}]
    for path in QUEUES:
        above = path.rsplit("/", 1)[0] if "/" in path else ""
        found.append({"uid": queue_entity(path), "attrs": {}, "parents": [queue_entity(above)]})
    for queue, owner in objects:
        found.append({"uid": {"type": "Object", "id": f"{queue} of {owner}"}, "attrs": {"owner": owner}, "parents": [queue_entity(queue)]})
    return found


def policies(reaches, bindings):
    """Each binding (user or group, role, queue) as policies of its own: one for what it has of all, one for the own."""
    lines = []
    for (kind, name), role, queue in bindings:
        who = f'principal == User::"{name}"' if kind == "user" else f'principal in Group::"{name}"'
        for reach, condition in (("all", ""), ("own", ' when { resource.owner == principal.name }')):
            verbs = [f'Action::"{verb}"' for verb, row in reaches.items() if row[role] == reach]
            if verbs:
                lines.append(f'permit({who}, action in [{", ".join(verbs)}], resource in Queue::"{queue or "/"}"){condition};')
    return "\n".join(lines)


def users_of(bindings, groups):
    names = {name for (kind, name), _, _ in bindings if kind == "user"} | set(groups) | {"nobody"}
    found = [{"uid": {"type": "User", "id": name}, "attrs": {"name": name},
              "parents": [{"type": "Group", "id": group} for group in groups.get(name, [])]} for name in sorted(names)]
    return found + [{"uid": {"type": "Group", "id": group}, "attrs": {}, "parents": []} for group in sorted({one for all_of in groups.values() for one in all_of})]


class Program:
    """A server with the bindings in its configuration, asked as `berth auth can-i` asks it."""

    def __init__(self, bindings):
        self.directory = fresh_directory()
        config = os.path.join(self.directory, "cluster.yaml")
        tree = {}
        for path in QUEUES:
            place = tree
            for name in path.split("/"):
                place = place.setdefault("queues", {}).setdefault(name, {})
        roles = [{"subject": ":".join(subject), "role": role, **({"queue": queue} if queue else {})} for subject, role, queue in bindings]
        with open(config, "w") as file:
            json.dump({"cluster": "test", **tree, "roles": roles}, file)
        self.server = Server(self.directory, config, flags=["--no-node", "--rate-limit", "none"], gpus=None)
        self.server.node_name = None
        assert self.server.start(), self.server.tail()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=stretched(60))

    def allows(self, name, groups, verb, queue, owner):
        query = [("subject", "user:" + name), ("verb", verb), ("queue", queue), ("owner", owner), *(("group", group) for group in groups)]
        self.connection.request("GET", "/v1/access?" + urllib.parse.urlencode(query), headers={"Authorization": "Bearer " + self.server.token})
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return json.loads(content)["allowed"]

    def discard(self):
        self.server.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def reference(reaches, bindings, groups, cases):
    """What Cedar says to each case (name, verb, queue, owner)."""
    import cedarpy
    objects = sorted({(queue, owner) for _, _, queue, owner in cases})
    requests = [{"principal": f'User::"{name}"', "action": f'Action::"{verb}"', "resource": f'Object::"{queue} of {owner}"', "context": {}}
                for name, verb, queue, owner in cases]
    answers = cedarpy.is_authorized_batch(requests, policies(reaches, bindings), entities(objects) + users_of(bindings, groups))
    for answer in answers:
        assert not answer.diagnostics.errors, answer.diagnostics.errors
    return [answer.allowed for answer in answers]


def differing(program, reaches, bindings, groups, cases):
    decided = [program.allows(name, groups.get(name, []), verb, queue, owner) for name, verb, queue, owner in cases]
    wanted = reference(reaches, bindings, groups, cases)
    return [(case, ours, theirs) for case, ours, theirs in zip(cases, decided, wanted) if ours != theirs], sum(wanted)


def every_verb_role_relation_and_owner():
    reaches = table()
    roles = list(next(iter(reaches.values())))
    # The role metrics is had at the root alone.
    bindings = [(("user", role), role, "" if role == "metrics" else BOUND_AT) for role in roles]
    program = Program(bindings)
    cases = [(name, verb, queue, owner) for name, verb, queue in itertools.product([*roles, "nobody"], reaches, RELATIONS.values())
             for owner in (name, "someone", "")]
    differences, allowed = differing(program, reaches, bindings, {}, cases)
    print(f"  {len(cases)} decisions of {len(reaches)} verbs, {len(roles)} roles; {allowed} are allowed by both")
    assert not differences, differences[:20]
    assert len(reaches) >= 22 and len(roles) == 9 and allowed > 500, (len(reaches), roles, allowed)
    # The comparison finds one cell that is wrong.
    wrong = {**reaches, "read-log": {**reaches["read-log"], "auditor": "all"}}
    found, _ = differing(program, wrong, bindings, {}, [case for case in cases if case[1] == "read-log"])
    assert {(case[0], case[1]) for case, _, _ in found} == {("auditor", "read-log")}, found[:20]
    program.discard()


def several_bindings_groups_and_the_root():
    reaches = table()
    # ops is a user with two roles, and of a group with a third; eve has roles by groups alone.
    bindings = [(("user", "ops"), "operator", ""), (("user", "ops"), "viewer", "sales"), (("group", "corp:nlp"), "member", "research/nlp"),
                (("group", "corp:leads"), "lead", "research"), (("user", "root-finance"), "finance", ""), (("user", "boss"), "admin", "")]
    groups = {"ops": ["corp:nlp"], "eve": ["corp:nlp", "corp:leads"], "ann": ["corp:nlp"], "out": ["corp:nlp2"]}
    program = Program(bindings)
    names = sorted({"root-finance", "boss", "nobody", *groups})
    cases = [(name, verb, queue, owner) for name, verb, queue in itertools.product(names, reaches, ["", *QUEUES])
             for owner in (name, "someone", "")]
    differences, allowed = differing(program, reaches, bindings, groups, cases)
    print(f"  {len(cases)} decisions; {allowed} are allowed by both")
    assert not differences, differences[:20]
    assert allowed > 500
    program.discard()


if __name__ == "__main__":
    pypi.enter(REQUIREMENTS)
    sys.exit(tally.run([every_verb_role_relation_and_owner, several_bindings_groups_and_the_root]))

#!/usr/bin/env python3
"""The audit on a real server: two tenants, what is denied, break-glass, what each auditor sees, secrets that are nowhere in
it, a flood of denials that makes few records, and a stream for collectors."""
import base64
import http.client
import json
import os
import subprocess
import sys
import threading
import time

import tally
from patience import eventually, stretched
from server import Problem, berth_binary, discard, start_with

CONFIG = "cluster: test\nqueues:\n  red: {guaranteed: {gpus: 4}}\n  blue: {guaranteed: {gpus: 4}}\n"
SECRET = "hush-hush"


class Subject:
    def __init__(self, server, name, queue, role="member"):
        self.server = server
        self.token = server.ask("POST", "/v1/tokens", {"name": name, "role": role, "queue": queue, "expires_in_s": 3600})["token"]

    def ask(self, method, path, body=None, headers=None):
        return self.server.ask(method, path, body, {"Authorization": "Bearer " + self.token, **(headers or {})})

    def status(self, method, path, body=None):
        try:
            self.ask(method, path, body)
            return 200
        except Problem as problem:
            return problem.status

    def raw(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=stretched(20))
        connection.request("GET", path, headers={"Authorization": "Bearer " + self.token})
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        return answer.status, content

    def audit(self, query=""):
        return self.ask("GET", "/v1/audit?limit=1000" + query)["items"]

    def berth(self, *arguments):
        environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{self.server.port}", "BERTH_TOKEN": self.token}
        return subprocess.run([berth_binary(), *arguments], capture_output=True, text=True, timeout=stretched(60), env=environment)


def started(*flags):
    return start_with(CONFIG, flags)


def wait_log(subject, job, text):
    """The output of the job has this text."""
    def log():
        return subject.raw(f"/v1/jobs/{job}/logs")[1]
    eventually(lambda: f"job {job} says {text!r}, but it says {log()!r}", lambda: text in log())


def submitted(subject, text="echo of-the-job; sleep 600"):
    return subject.ask("POST", "/v1/jobs", {"gpus": 1, "name": SECRET, "comment": SECRET, "labels": {"x": SECRET},
                                            "env": {"KEY": SECRET}, "command": ["bash", "-c", text, SECRET]})["id"]


def changes_are_there_with_their_request_and_auditors_see_their_own_part():
    server = started()
    red, blue = Subject(server, "red-ci", "red"), Subject(server, "blue-ci", "blue")
    of_red, of_all = Subject(server, "red-aud", "red", "auditor"), Subject(server, "aud", "", "auditor")
    job = red.ask("POST", "/v1/jobs", {"gpus": 1, "command": ["sleep", "600"]}, {"X-Request-Id": "ticket-9"})["id"]
    submitted(blue)
    red.ask("DELETE", f"/v1/jobs/{job}")
    server.ask("POST", "/v1/queues/blue/changes", {"set": ["max.gpus=6"]})
    server.ask("POST", "/v1/nodes/n1/cordon")
    seen = of_red.audit()
    assert {entry["queue"] for entry in seen} == {"red"}, seen
    assert [(entry["verb"], entry["job"]) for entry in seen if entry["job"]] == [("submit", job), ("stop-job", job)], seen
    submission = next(entry for entry in seen if entry["verb"] == "submit")
    assert (submission["subject"], submission["proof"], submission["address"], submission["request"]) == (
        "token:red-ci", "token", "127.0.0.1", "ticket-9"), submission
    every = of_all.audit()
    change = next(entry for entry in every if entry["verb"] == "change-queue")
    assert change["changes"] == [{"key": "max.gpus", "before": "none", "after": "6"}], change
    assert next(entry for entry in every if entry["verb"] == "manage-nodes")["object"] == "node:n1", every
    assert {"change-config", "manage-tokens", "submit"} <= {entry["verb"] for entry in every}, every
    shown = of_red.berth("audit", "--since", "1h ago")
    assert shown.returncode == 0 and "stop-job" in shown.stdout and "blue" not in shown.stdout, shown
    lines = of_all.berth("audit", "--verb", "submit", "-o", "json").stdout.splitlines()
    assert [json.loads(line)["verb"] for line in lines] == ["submit", "submit"], lines
    newest = of_all.berth("audit", "--limit", "1", "-o", "json").stdout.splitlines()
    assert len(newest) == 1 and json.loads(newest[0])["seq"] == every[-1]["seq"], newest
    for member in (red, blue, Subject(server, "ops", "", "operator")):
        assert member.status("GET", "/v1/audit") == 403
    refused = red.berth("audit")
    assert refused.returncode == 6 and "see-audit" in refused.stderr, refused
    assert server.stop() is None and server.start(), server.tail()
    assert of_red.audit()[: len(seen)] == seen, "another after a restart"
    discard(server)


def orders_to_jobs_are_there_with_subject_queue_verb_and_values():
    server = started()
    red, lead, aud = Subject(server, "red-ci", "red"), Subject(server, "red-lead", "red", "lead"), Subject(server, "aud", "red", "auditor")
    job = submitted(red, "trap 'echo got it' USR1; trap 'echo and another' USR2; echo of-the-job; while true; do sleep 0.1; done")
    wait_log(red, job, "of-the-job")
    before = red.ask("GET", f"/v1/jobs/{job}")["priority"]
    assert lead.status("POST", f"/v1/jobs/{job}/signal", {"signal": 10}) == 200
    wait_log(red, job, "got it")
    server.stop()  # a restart tells all that is in force again, and not the signal
    assert server.start(), server.tail()
    red.ask("POST", f"/v1/jobs/{job}/signal", {"signal": 12})  # comes after whatever is told again
    wait_log(red, job, "and another")
    assert red.raw(f"/v1/jobs/{job}/logs")[1].count("got it") == 1, "sent again"
    assert lead.status("POST", f"/v1/jobs/{job}/signal", {"signal": 9}) == 400
    assert lead.berth("prioritize", str(job), "77").returncode == 0
    assert lead.berth("cancel", str(job)).returncode == 0
    server.wait_phase(job, "finished")
    assert lead.status("POST", f"/v1/jobs/{job}/signal", {"signal": 10}) in (404, 409)
    seen = [entry for entry in aud.audit() if entry["subject"] == "token:red-lead"]
    assert [(entry["verb"], entry["queue"], entry["job"]) for entry in seen] == [
        ("stop-job", "red", job), ("prioritize-job", "red", job), ("stop-job", "red", job)], seen
    assert seen[0]["changes"] == [{"key": "signal", "before": None, "after": "10"}], seen
    assert seen[1]["changes"] == [{"key": "priority", "before": str(before), "after": "77"}], seen
    shown = aud.berth("audit", "--verb", "prioritize-job").stdout
    assert f"priority: {before} -> 77" in shown, shown
    discard(server)


def what_rules_and_terms_refuse_is_counted_as_denied():
    server = start_with(CONFIG.replace("red: {", "red: {admission: {small: {max_gpus: 2}}, queues: {nlp: {guaranteed: {gpus: 1}}}, "), ())
    red, org = Subject(server, "red-ci", "red/nlp"), Subject(server, "red-org", "red", "org-admin")
    for path in ("/v1/jobs", "/v1/jobs", "/v1/forecast"):
        assert red.status("POST", path, {"gpus": 3, "command": ["true"]}) == 403, path
    assert red.status("POST", "/v1/jobs", {"gpus": 2, "command": ["true"]}) == 200
    for setting, code in (("eviction.min_runtime=9h", 403), ("guaranteed.gpus=9", 409)):
        assert org.status("POST", "/v1/queues/red%2Fnlp/changes", {"set": [setting]}) == code, setting
    server.stop()
    assert server.start(), server.tail()
    counted = [(entry["subject"], entry["verb"], entry["queue"], entry["count"]) for entry in org.audit("&denied=true")]
    assert sorted(counted) == [("token:red-ci", "submit", "red/nlp", 3), ("token:red-org", "change-queue", "red/nlp", 1)], counted
    discard(server)


def what_is_denied_is_counted_and_has_no_secret():
    server = started()
    red, blue, aud = Subject(server, "red-ci", "red"), Subject(server, "blue-ci", "blue"), Subject(server, "aud", "", "auditor")
    job = submitted(red)
    for _ in range(3):
        assert blue.status("GET", f"/v1/jobs/{job}/logs") == 404
    for _ in range(2):
        assert blue.status("POST", "/v1/jobs", {"queue": "red", "gpus": 1, "env": {"K": SECRET}, "command": [SECRET]}) == 403
    for _ in range(4):
        try:
            server.ask("GET", "/v1/jobs", headers={"Authorization": "Bearer " + SECRET * 4})
            raise AssertionError("a made-up token is good")
        except Problem as problem:
            assert problem.status == 401
    server.stop()  # writes what was counted
    assert server.start(), server.tail()
    counted = {}
    for entry in aud.audit("&denied=true"):
        key = (entry["subject"] or entry["address"], entry["verb"], entry["job"] or entry["queue"])
        counted[key] = counted.get(key, 0) + entry["count"]
        assert entry["first"] <= entry["last"], entry
    assert counted == {("token:blue-ci", "see-job", job): 3, ("token:blue-ci", "submit", "red"): 2, ("127.0.0.1", "sign-in", ""): 4}, counted
    for subject in (red, blue, aud):
        assert subject.token not in json.dumps(aud.audit())
    assert SECRET not in json.dumps(aud.audit()) + aud.berth("audit", "-o", "yaml").stdout
    discard(server)


def a_tenant_sees_who_broke_the_glass():
    server = started()
    red, ops = Subject(server, "red-ci", "red"), Subject(server, "ops", "", "operator")
    lead, aud = Subject(server, "red-lead", "red", "lead"), Subject(server, "red-aud", "red", "auditor")
    job = submitted(red)
    wait_log(red, job, "of-the-job")
    refused = ops.berth("logs", str(job))
    assert refused.returncode == 6 and "--break-glass" in refused.stderr and "of-the-job" not in refused.stdout, refused
    for subject in (ops, red):  # also where it is one's own job
        for reason in ("", "  ", "a\nb"):
            refused = subject.berth("logs", str(job), "--break-glass", reason)
            assert refused.returncode == 2 and "needs a reason" in refused.stderr and refused.stdout == "", refused
    for _ in range(3):
        read = ops.berth("logs", str(job), "--break-glass", "n1 has ECC errors")
        assert read.returncode == 0 and "of-the-job" in read.stdout, read
    assert lead.raw(f"/v1/jobs/{job}/logs")[0] == 200
    view = red.ask("GET", f"/v1/jobs/{job}")["break_glass"]
    assert [(one["subject"], one["reason"]) for one in view] == [("token:ops", "n1 has ECC errors")], view
    assert "n1 has ECC errors" in red.berth("job", str(job)).stdout
    entries = [entry for entry in aud.audit() if entry["verb"] in ("break-glass", "read-log") and not entry["denied"]]
    assert [(entry["verb"], entry["subject"], entry["reason"]) for entry in entries] == [
        ("break-glass", "token:ops", "n1 has ECC errors"), ("read-log", "token:red-lead", "")], entries
    reads = [event for event in server.all_events() if event["kind"] == "log-read"]
    assert [(event["job"], event["by"]["subject"]) for event in reads] == [(job, "token:ops"), (job, "token:red-lead")], reads
    discard(server)


class Provider:
    """An identity provider that is a key: the server has its keys in a file, and openssl signs."""

    def __init__(self, server):
        self.key, keys = os.path.join(server.directory, "provider.pem"), os.path.join(server.directory, "keys.json")
        self.run("genrsa", "-out", self.key, "2048")
        modulus = bytes.fromhex(self.run("rsa", "-in", self.key, "-noout", "-modulus").decode().strip().split("=")[1])
        with open(keys, "w") as file:
            json.dump({"keys": [{"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "e": "AQAB", "n": self.encoded(modulus)}]}, file)
        self.file = os.path.join(server.directory, "issuers.yaml")
        with open(self.file, "w") as file:
            json.dump({"issuers": [{"name": "corp", "url": "https://login.example.com", "audience": "berth", "keys_file": keys}]}, file)

    @staticmethod
    def run(*words, content=None):
        return subprocess.run(["openssl", *words], input=content, check=True, capture_output=True).stdout

    @staticmethod
    def encoded(content):
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    def token(self, user, lives_s=600):
        now = int(time.time())
        claims = {"iss": "https://login.example.com", "aud": "berth", "sub": user, "iat": now - 7200, "exp": now + lives_s}
        text = ".".join(self.encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "k1"}, claims))
        return text + "." + self.encoded(self.run("dgst", "-sha256", "-sign", self.key, content=text.encode()))


def sign_ins_are_there_those_that_fail_as_denied():
    server = started()
    provider = Provider(server)
    server.stop()
    server.flags += ["--issuers", provider.file]
    assert server.start(), server.tail()
    aud, red = Subject(server, "aud", "", "auditor"), Subject(server, "red-aud", "red", "auditor")
    ada = {"Authorization": "Bearer " + provider.token("ada")}
    for _ in range(3):
        assert server.ask("GET", "/v1/identity", headers=ada)["subject"] == "user:corp:ada"
    for token in (provider.token("ada", -3600), provider.token("eve", -3600), provider.token("ada")[:-8] + "AAAAAAAA"):
        try:
            server.ask("GET", "/v1/identity", headers={"Authorization": "Bearer " + token})
            raise AssertionError("a bad token is good")
        except Problem as problem:
            assert problem.status == 401, problem
    seen = eventually("the sign-in is on record", lambda: aud.audit("&verb=sign-in&denied=false&subject=user:corp:ada"))
    assert [(entry["subject"], entry["proof"], entry["address"], entry["denied"]) for entry in seen] == [
        ("user:corp:ada", "issuer", "127.0.0.1", False)], seen  # the first use, and no other
    server.stop()  # writes what was counted
    assert server.start(), server.tail()
    failed = aud.audit("&verb=sign-in&denied=true")
    assert {(entry["subject"], entry["address"]) for entry in failed} == {("", "127.0.0.1")}, failed
    assert sum(entry["count"] for entry in failed) == 3, failed
    assert "127.0.0.1" in aud.berth("audit", "--verb", "sign-in", "--denied").stdout
    assert red.audit("&verb=sign-in") == [], "sign-ins are of the whole cluster"
    discard(server)


def a_flood_of_denials_is_few_records():
    server = started("--rate-limit", "none")
    red, blue = Subject(server, "red-ci", "red"), Subject(server, "blue-ci", "blue")
    job = submitted(red)
    done = [0] * 4

    def flood(index):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(20))
        while done[index] < 1000:
            path = f"/v1/jobs/{job}" if done[index] % 2 else f"/v1/queues/made-up-{index}-{done[index]}"
            connection.request("GET", path, headers={"Authorization": "Bearer " + blue.token})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 404, answer.status
            done[index] += 1
        connection.close()
    threads = [threading.Thread(target=flood, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.stop()
    assert server.start(), server.tail()
    entries = [entry for entry in Subject(server, "aud", "", "auditor").audit("&denied=true")]
    assert sum(entry["count"] for entry in entries) == sum(done), (entries, done)
    assert sum(done) == 4000 and len(entries) <= 40, (len(entries), done)
    assert {entry["subject"] for entry in entries} == {"token:blue-ci"}, entries
    discard(server)


def collectors_follow_it_line_by_line():
    server = started()
    red, aud = Subject(server, "red-ci", "red"), Subject(server, "red-aud", "red", "auditor")
    environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}", "BERTH_TOKEN": aud.token}
    following = subprocess.Popen([berth_binary(), "audit", "--follow", "-o", "json", "--limit", "2"], stdout=subprocess.PIPE, text=True, env=environment)
    # It begins with what comes next, whenever that is for it: so there is more, until it has seen enough.
    jobs = []

    def more():
        server.ask("POST", "/v1/jobs", {"queue": "blue", "gpus": 1, "command": ["true"]})  # is not of its part
        jobs.append(submitted(red))
        red.ask("DELETE", f"/v1/jobs/{jobs[-1]}")
        return following.poll() is not None
    eventually("it has followed two entries", more, every_s=0.5)
    entries = [json.loads(line) for line in following.communicate()[0].splitlines()]
    told = [(verb, job) for job in jobs for verb in ("submit", "stop-job")]
    first = told.index((entries[0]["verb"], entries[0]["job"]))
    assert [(entry["verb"], entry["job"]) for entry in entries] == told[first:first + 2], (entries, told)
    discard(server)


def main():
    return tally.run([changes_are_there_with_their_request_and_auditors_see_their_own_part,
                      orders_to_jobs_are_there_with_subject_queue_verb_and_values,
                      what_rules_and_terms_refuse_is_counted_as_denied,
                      what_is_denied_is_counted_and_has_no_secret, a_tenant_sees_who_broke_the_glass,
                      sign_ins_are_there_those_that_fail_as_denied,
                      a_flood_of_denials_is_few_records, collectors_follow_it_line_by_line])


if __name__ == "__main__":
    sys.exit(main())

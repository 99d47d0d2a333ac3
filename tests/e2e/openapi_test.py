"""The API of a real server against its own document: the document is valid OpenAPI, each operation is called as the
document says, every answer is what its schema says, and a followed stream of events has neither gap nor repeat.

Needs packages of PyPI: pypi.py."""
import datetime
import http.client
import json
import os
import re
import shutil
import sys
import time

import pypi
import tally
from patience import stretched
from tally import check

ROOT = os.path.dirname(os.path.dirname(pypi.HERE))
CONFIG = {"queues": {"a": {"guaranteed": {"gpus": 4}}, "b": {"max": {"gpus": 7.5}, "queues": {"nlp": {}}}}}
PRICES = {"currency": "EUR", "prices": [{"valid_from": "2020-01-01", "gpus": {"H100-SXM5-80GB": {"floor": 2.5, "burst": 3}},
                                         "quantities": {"storage": {"unit": "GiB-hours", "price": 0.0001}},
                                         "off_peak": [{"from": "20:00", "to": "08:00", "zone": "Europe/Paris", "discount": 30}]}]}
JOB = {"name": "sleeper", "queue": "a", "gpus": 2, "cpus": "0.5", "command": ["sleep", "60"]}
WAITING = {"name": "waiter", "queue": "b/nlp", "user": "bob", "hold": True, "command": "true"}
TOMORROW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
QUICK = {"name": "quick", "queue": "b/nlp", "cpus": "0.1", "command": "echo hello"}

# One good call of every operation, in an order in which each finds what it needs. A body is JSON.
CALLS = [
    ("getHealth", "GET", "/healthz", None),
    ("getReadiness", "GET", "/readyz", None),
    ("getOpenApi", "GET", "/openapi.json", None),
    ("diffConfig", "POST", "/v1/config/diff", CONFIG),
    ("putConfig", "PUT", "/v1/config", CONFIG),
    ("getConfig", "GET", "/v1/config", None),
    ("submitJob", "POST", "/v1/jobs", JOB),
    ("submitJob", "POST", "/v1/jobs", WAITING),
    ("submitJob", "POST", "/v1/jobs", QUICK),
    ("getCluster", "GET", "/v1/cluster", None),
    ("getMetrics", "GET", "/metrics", None),
    ("holdJob", "POST", "/v1/jobs/2/hold", None),
    ("prioritizeJob", "PUT", "/v1/jobs/2/priority", {"priority": 7}),
    ("explainJob", "GET", "/v1/jobs/2/why", None),
    ("forecastJob", "POST", "/v1/forecast", JOB),
    ("forecastPriority", "POST", "/v1/jobs/2/forecast", {"priority": 9}),
    ("explainShare", "GET", "/v1/queues/b%2Fnlp/share", None),
    ("getJob", "GET", "/v1/jobs/1", None),
    ("getJobLog", "GET", "/v1/jobs/1/logs", None),
    ("openShell", "GET", "/v1/jobs/1/exec?command=%5B%22true%22%5D", None),
    ("attachTerminal", "GET", "/v1/jobs/1/attach", None),
    ("reportCheckpoint", "POST", "/v1/jobs/1/checkpoint", {"attempt": 1, "step": 10}),
    ("signalJob", "POST", "/v1/jobs/1/signal", {"signal": 18}),
    ("moveJob", "POST", "/v1/jobs/1/move", {"lose_work": True}),  # there is one node: a conflict, and documented
    ("listJobs", "GET", "/v1/jobs?sort=-gpus&limit=1", None),
    ("listJobs", "GET", "/v1/jobs?finished=true", None),
    ("listQueues", "GET", "/v1/queues", None),
    ("getQueue", "GET", "/v1/queues/b%2Fnlp", None),
    ("setQueue", "POST", "/v1/queues/b%2Fnlp/changes", {"set": ["weight=3", "max.gpus=2"], "until": TOMORROW}),
    ("previewQueueChange", "POST", "/v1/queues/b%2Fnlp/changes/preview", {"set": ["weight=+1"]}),
    ("getQueue", "GET", "/v1/queues/b%2Fnlp", None),
    ("getConfig", "GET", "/v1/config", None),
    ("diffConfig", "POST", "/v1/config/diff", CONFIG),
    ("undoQueueChange", "POST", "/v1/queues/b%2Fnlp/changes/undo", None),
    ("grantRole", "POST", "/v1/roles", {"subject": "user:zoe", "role": "member", "queue": "b"}),
    ("blockSubject", "POST", "/v1/subjects/block", {"subject": "user:zoe"}),
    ("listRoles", "GET", "/v1/roles", None),
    ("unblockSubject", "POST", "/v1/subjects/unblock", {"subject": "user:zoe"}),
    ("revokeRole", "POST", "/v1/roles/revoke", {"subject": "user:zoe", "role": "member", "queue": "b"}),
    ("listNodes", "GET", "/v1/nodes", None),
    ("getNode", "GET", "/v1/nodes/n1", None),
    ("getClock", "GET", "/v1/clock", None),
    ("getIdentity", "GET", "/v1/identity", None),
    ("checkAccess", "GET", "/v1/access?verb=submit&queue=research", None),
    ("createToken", "POST", "/v1/tokens", {"name": "ci", "role": "member", "expires_in_s": 60}),
    ("listTokens", "GET", "/v1/tokens", None),
    ("revokeToken", "DELETE", "/v1/tokens/ci", None),
    ("getProviderConfiguration", "GET", "/.well-known/openid-configuration", None),
    ("listSigningKeys", "GET", "/v1/keys", None),
    ("rotateSigningKeys", "POST", "/v1/keys/rotate", None),
    ("createJobIdentity", "POST", "/v1/jobs/1/identity?audience=vault", None),  # for the job alone: denied, and documented
    ("confirmClock", "POST", "/v1/clock/confirm?offset_ms=5", None),  # it is right: a conflict, and documented
    ("cordonNode", "POST", "/v1/nodes/n1/cordon", None),
    ("uncordonNode", "POST", "/v1/nodes/n1/uncordon", None),
    ("planMaintenance", "POST", "/v1/maintenance", {"name": "m1", "nodes": ["n1"], "for_s": 600}),
    ("listMaintenance", "GET", "/v1/maintenance", None),
    ("getCapacity", "GET", "/v1/capacity?idle_for_s=0", None),
    ("getAdvice", "GET", "/v1/advice", None),
    ("getDiagnosis", "GET", "/v1/diagnosis", None),
    ("cancelMaintenance", "DELETE", "/v1/maintenance/m1", None),
    ("getUsage", "GET", "/v1/usage", None),
    ("getPrices", "GET", "/v1/prices", None),
    ("diffPrices", "POST", "/v1/prices/diff", PRICES),
    ("putPrices", "PUT", "/v1/prices", PRICES),
    ("getBill", "GET", "/v1/bill?by=kind", None),
    ("getBillLine", "GET", "/v1/bill/lines/1-000000000000", None),  # there is none: documented
    ("tryBill", "POST", "/v1/bill", PRICES),
    ("listRules", "GET", "/v1/rules", None),
    ("putRules", "PUT", "/v1/rules", {"admission": {"small": {"max_gpus": 500}}}),
    ("testRules", "POST", "/v1/rules/test?since=2020-01-01", {"admission": {"small": {"max_gpus": 0}}}),
    ("reportQuantities", "POST", "/v1/quantities", {"quantities": [
        {"id": "nas-7", "queue": "a", "kind": "storage", "quantity": 5, "from": "2024-02-01", "to": "2024-02-02"}]}),
    ("listQuantities", "GET", "/v1/quantities", None),
    ("closeMonth", "POST", "/v1/months/2020-01/close", None),
    ("correctBill", "POST", datetime.date.today().strftime("/v1/months/%Y-%m/corrections"),
     {"queue": "a", "amount_micro": -5, "reason": "a node was lost"}),
    ("listEvents", "GET", "/v1/events?from=1", None),
    ("listAudit", "GET", "/v1/audit?verb=submit", None),
    ("getSnapshot", "GET", "/v1/snapshot", None),
    ("cancelJob", "DELETE", "/v1/jobs/1", None),
    ("releaseJob", "POST", "/v1/jobs/2/release", None),
    ("drainNode", "POST", "/v1/nodes/n1/drain", None),
    ("fenceNode", "POST", "/v1/nodes/n1/fence", None),  # the node is in contact: a conflict, and documented
]


# What is refused as it is called here, and how: documented, too.
REFUSED = {"openShell": 426, "attachTerminal": 426, "fenceNode": 409, "moveJob": 409, "confirmClock": 409, "createJobIdentity": 403, "getBillLine": 404,
           "closeMonth": 400}  # 2020-01 was over before the log began


def to_json_schema(schema):
    """OpenAPI 3.0 says nullable where JSON Schema says type null; and nothing may be there that is not described."""
    if isinstance(schema, list):
        return [to_json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: to_json_schema(value) for key, value in schema.items() if key != "nullable"}
    if "properties" in plain and "additionalProperties" not in plain:
        plain["additionalProperties"] = False
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


class Document:
    def __init__(self, document):
        import jsonschema
        self.validator = jsonschema.Draft7Validator
        self.components = {"components": {"schemas": to_json_schema(document["components"]["schemas"])}}
        self.operations = {}
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                self.operations[operation["operationId"]] = operation

    def fault(self, value, schema):
        error = next(self.validator({**to_json_schema(schema), **self.components}).iter_errors(value), None)
        return None if error is None else f"{error.json_path}: {error.message[:300]}"

    def check_answer(self, operation_id, status, content_type, content):
        documented = self.operations[operation_id]["responses"]
        answer = documented.get(str(status), documented.get("default") if status >= 400 else None)
        check(answer is not None, f"{operation_id}: status {status} is not documented")
        body = (answer or {}).get("content", {}).get(content_type)
        check(body is not None, f"{operation_id}: {content_type} is not documented for {status}")
        if body is not None and content_type.endswith("json"):
            fault = self.fault(json.loads(content), body["schema"])
            check(fault is None, f"{operation_id}: the answer is not what its schema says: {fault}")


def ask(server, method, target, body=None, token=True):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(30))
    headers = {"Authorization": "Bearer " + server.token} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, target, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.getheader("Content-Type"), content


def check_page(text):
    """docs/api.md lists each operation, and no other."""
    with open(os.path.join(ROOT, "docs", "api.md")) as file:
        told = set(re.findall(r"`((?:GET|PUT|POST|DELETE) /\S+)`(?=[^\n]*\|$)", file.read().split("## Clients")[0], re.MULTILINE))
    served = {f"{method.upper()} {path}" for path, methods in text["paths"].items() for method in methods}
    check(told == served, f"docs/api.md and the document differ: {told ^ served}")


def call_everything(server, document):
    called = set()
    for operation_id, method, target, body in CALLS:
        called.add(operation_id)
        if target == "/v1/jobs?finished=true":
            outcome = wait_for_finished(server)
            check(outcome == "succeeded", f"the quick job is {outcome}")
        if body is not None:
            schema = document.operations[operation_id]["requestBody"]["content"]["application/json"]["schema"]
            fault = document.fault(body, schema)
            check(fault is None, f"{operation_id}: the example is not what the request schema says: {fault}")
        status, content_type, content = ask(server, method, target, body)
        expected = status == REFUSED[operation_id] if operation_id in REFUSED else status < 300
        check(expected, f"{method} {target}: {status} {content[:300]}")
        document.check_answer(operation_id, status, content_type, content)
    check(called == set(document.operations), f"not called: {set(document.operations) - called}")


def call_wrongly(server, document):
    for operation_id, method, target, body, expected in [
            ("getJob", "GET", "/v1/jobs/999", None, 404), ("getJob", "GET", "/v1/jobs/x", None, 400),
            ("listJobs", "GET", "/v1/jobs?nothing=1", None, 400), ("submitJob", "POST", "/v1/jobs", {"x": 1}, 400),
            ("submitJob", "POST", "/v1/jobs", {**JOB, "queue": "nowhere"}, 400),
            ("putConfig", "PUT", "/v1/config", {"queues": {}}, 400)]:
        status, content_type, content = ask(server, method, target, body)
        check(status == expected, f"{method} {target}: {status}, not {expected}")
        document.check_answer(operation_id, status, content_type, content)
    for operation_id, operation in document.operations.items():
        if operation.get("security") == []:
            continue
        method, target = next((m, t) for one, m, t, _ in CALLS if one == operation_id)
        check(ask(server, method, target, token=False)[0] == 401, f"{operation_id} answers without a token")


def follow(server, headers, until):
    """Sequence numbers of a stream of server-sent events, until that one."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(30))
    connection.request("GET", "/v1/events?follow=true&from=1", headers={"Authorization": "Bearer " + server.token, **headers})
    answer = connection.getresponse()
    seen = []
    while not seen or seen[-1] < until:
        line = answer.readline()
        if not line:
            break
        if line.startswith(b"id: "):
            seen.append(int(line[4:]))
    connection.close()
    return seen


def check_stream(server):
    def last():
        return json.loads(ask(server, "GET", "/v1/cluster")[2])["seq"]
    middle = last()
    check(follow(server, {}, middle) == list(range(1, middle + 1)), "the stream from the start has a gap or repeat")
    for _ in range(20):
        ask(server, "POST", "/v1/jobs", WAITING)
    end = last()
    resumed = follow(server, {"Last-Event-ID": str(middle)}, end)
    check(resumed == list(range(middle + 1, end + 1)), "the resumed stream has a gap or repeat")
    pages, start = [], 1
    while start <= end:
        page = json.loads(ask(server, "GET", f"/v1/events?from={start}&limit=7")[2])
        pages += [event["seq"] for event in page["items"]]
        start = page["next_from"]
    check(pages[:end] == list(range(1, end + 1)), "the pages have a gap or repeat")


def wait_for_finished(server):
    """A finished job is asked too: it comes from history."""
    return server.wait_phase(3, "finished")["outcome"]


def main():
    pypi.enter()
    from openapi_spec_validator import validate
    from server import Server, fresh_directory
    directory = fresh_directory()
    server = Server(directory)
    if not server.start():
        raise SystemExit("the server does not start:\n" + server.tail())
    try:
        text = json.loads(ask(server, "GET", "/openapi.json", token=False)[2])
        try:
            validate(text)
            check(True, "")
        except Exception as error:  # noqa: BLE001: whatever it says is what is wrong with the document
            check(False, f"the document is not valid OpenAPI: {error}"[:500])
        check_page(text)
        document = Document(text)
        call_everything(server, document)
        document.check_answer("getJob", *ask(server, "GET", "/v1/jobs/3"))
        document.check_answer("listJobs", *ask(server, "GET", "/v1/jobs?phase=finished"))
        call_wrongly(server, document)
        check_stream(server)
    finally:
        server.stop()
    if not tally.failures:
        shutil.rmtree(directory, ignore_errors=True)
    print(tally.summary())
    sys.exit(1 if tally.failures else 0)


if __name__ == "__main__":
    main()

"""A client that openapi-python-client makes of the served document, against a real server: it submits a job, lists it,
reads the configuration, adds a queue, applies it, and loses nothing of any answer. So does the example of such a client.

Needs packages of PyPI: pypi.py."""
import datetime
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

import pypi
import tally
from patience import stretched
from tally import check

EXAMPLE = os.path.join(os.path.dirname(pypi.HERE), os.pardir, "examples", "client", "submit.py")
# The generator knows no YAML: of the bodies that may be JSON or YAML it makes functions that send JSON.
UNREAD = {"POST /v1/jobs", "POST /v1/forecast", "POST /v1/config/diff", "PUT /v1/config", "PUT /v1/prices", "POST /v1/prices/diff",
          "POST /v1/bill", "POST /v1/quantities", "POST /v1/rules/test", "PUT /v1/rules"}
CONFIG = {"gpu_models": {"H100-SXM5-80GB": {"weight": 2}},
          "queues": {"research": {"guaranteed": {"gpus": 4, "gpus.H100-SXM5-80GB": 2}, "queues": {"nlp": {"weight": 3}}},
                     "batch": {"max": {"memory": "64GiB"}, "eviction": {"grace": "90s"}}},
          "pools": [{"name": "default"}, {"name": "spot", "burst": True, "queues": ["batch"]}],
          "scheduling": {"min_runtime": "10m"}}


def served_document(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/openapi.json", timeout=stretched(30)) as answer:  # without a token
        return json.load(answer)


def generate(document, directory):
    """Makes the package berth_client there; what the generator could not read is a failure, unless it is UNREAD."""
    path = os.path.join(directory, "openapi.json")
    with open(path, "w") as file:
        json.dump(document, file)
    command = [pypi.program("openapi-python-client"), "generate", "--path", path, "--meta", "none",
               "--output-path", os.path.join(directory, "berth_client")]
    with_ruff = {**os.environ, "PATH": os.path.dirname(command[0]) + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=with_ruff)
    said = done.stdout + done.stderr
    check(done.returncode == 0, f"the generator fails: {said[-2000:]}")
    warned = set(re.findall(r"(?:WARNING|ERROR) parsing ([A-Z]+ \S+)", said))
    check(warned == UNREAD, f"the generator cannot read {warned ^ UNREAD}: {said[-2000:]}")
    check("Unable to" not in said and "Failure" not in said, f"the generator leaves something out: {said[-2000:]}")
    sys.path.insert(0, directory)


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Calls:
    """The functions of the generated client by operation id."""

    def __init__(self, document, client):
        self.client = client
        self.tags = {operation["operationId"]: operation["tags"][0]
                     for methods in document["paths"].values() for operation in methods.values()}

    def __call__(self, operation_id, *arguments, **named):
        module = importlib.import_module(f"berth_client.api.{self.tags[operation_id]}.{snake(operation_id)}")
        return module.sync_detailed(*arguments, client=self.client, **named)


def plain(value):
    """Times as what they mean: the client writes +00:00 where the server writes Z."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", value):
        return datetime.datetime.fromisoformat(value).timestamp()
    return value


def check_whole(what, answer):
    """The parsed answer has all that was sent."""
    check(answer.status_code < 300, f"{what}: {answer.status_code} {answer.content[:300]}")
    sent = plain(json.loads(answer.content))
    kept = plain(answer.parsed.to_dict())
    check(kept == sent, f"{what}: the client loses something:\n{json.dumps(sent)[:1500]}\n{json.dumps(kept)[:1500]}")


def submit_and_list(call, models):
    deadline = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    job = models.JobDocument(name="train", queue="research/nlp", gpus=2, command=["sleep", "60"], deadline=deadline,
                             labels=models.JobDocumentLabels.from_dict({"team": "nlp"}), time_limit="2h")
    taken = call("submitJob", body=job, idempotency_key="run-17")
    check(taken.status_code == 201 and taken.parsed.id == 1, f"not submitted: {taken.content}")
    again = call("submitJob", body=job, idempotency_key="run-17")
    check(again.status_code == 200 and again.parsed.repeated, f"not the same job: {again.content}")
    listed = call("listJobs", queue="research").parsed
    check([one.name for one in listed.items] == ["train"], f"not listed: {listed}")
    seen = call("getJob", 1).parsed
    check(seen.spec.queue == "research/nlp" and seen.spec.labels["team"] == "nlp", f"not as it was submitted: {seen.spec}")
    check(abs((seen.spec.deadline - deadline).total_seconds()) < 0.002, f"another deadline: {seen.spec.deadline}")
    refused = call("submitJob", body=models.JobDocument(queue="nowhere", command="true"))
    check(refused.status_code == 400 and "nowhere" in refused.parsed.detail, f"not refused: {refused.content}")
    check(call("getJob", 99).parsed.code == "not-found", "a job that is not there")


def read_and_apply(call, models):
    applied = call("putConfig", body=models.ConfigDocument.from_dict(CONFIG))
    check(applied.status_code == 200, f"not applied: {applied.content}")
    in_force = call("getConfig")
    check_whole("getConfig", in_force)
    config = in_force.parsed.config
    check(config.queues["research"].queues["nlp"].weight == 3, f"queues are not read: {config.queues}")
    check(call("putConfig", body=config).parsed.unchanged, "what was read is not what is in force")
    config.queues["research"].queues["vision"] = models.QueueDocument(weight=2)
    told = call("diffConfig", body=config).parsed.changes
    check(any("research/vision" in line for line in told), f"the queue is no change: {told}")
    check(call("putConfig", body=config).parsed.version == in_force.parsed.version + 1, "the queue is not applied")
    check(call("getQueue", "research/vision").parsed.weight == 2, "the new queue is not there")


def run_the_example(server, directory):
    """examples/client/submit.py, as its first lines say."""
    environment = {**os.environ, "PYTHONPATH": directory, "BERTH_SERVER": f"http://127.0.0.1:{server.port}", "BERTH_TOKEN": server.token}
    for queue, code, out, err in [("batch", 0, "hello\n", "job "), ("nowhere", 1, "", "400 invalid")]:
        done = subprocess.run([sys.executable, EXAMPLE, queue, "echo", "hello"], capture_output=True, text=True, timeout=stretched(120), env=environment)
        check((done.returncode, done.stdout) == (code, out) and err in done.stderr, f"the example: {done}")


READS = {"getHealth": [], "getReadiness": [], "getOpenApi": [], "getCluster": [], "getClock": [], "getIdentity": [], "checkAccess": [], "listTokens": [], "getProviderConfiguration": [], "listSigningKeys": [], "listRoles": [], "getConfig": [],
         "listJobs": [],
         "getJob": [1], "explainJob": [1], "listQueues": [], "getQueue": ["research/nlp"], "explainShare": ["research"],
         "listNodes": [], "getNode": ["n1"], "listMaintenance": [], "getCapacity": [], "getAdvice": [], "getDiagnosis": [], "getUsage": [],
         "getPrices": [], "listRules": [], "listQuantities": [], "getBill": [], "listEvents": [], "listAudit": [], "getSnapshot": []}
NOT_JSON = {"getMetrics": [], "getJobLog": [1]}
NOT_THERE = {"getBillLine": ["1-000000000000"]}


def apply_prices(call, models):
    prices = {"currency": "EUR", "prices": [{"valid_from": "2026-01-01", "gpus": {"H100-SXM5-80GB": {"floor": "2.5", "burst": 3}}}]}
    applied = call("putPrices", body=models.PriceDocument.from_dict(prices))
    check(applied.status_code == 200, f"prices are not applied: {applied.content}")


def read_everything(call, document):
    reads = {methods["get"]["operationId"] for methods in document["paths"].values()
             if "get" in methods and "101" not in methods["get"]["responses"]}  # a WebSocket is no read: shell_test
    known = READS.keys() | NOT_JSON.keys() | NOT_THERE.keys()
    check(reads == known, f"not read: {reads ^ known}")
    for operation_id, arguments in READS.items():
        check_whole(operation_id, call(operation_id, *arguments))
    for operation_id, arguments in NOT_JSON.items():
        check(call(operation_id, *arguments).status_code == 200, f"{operation_id} is not read")
    for operation_id, arguments in NOT_THERE.items():
        check(call(operation_id, *arguments).status_code == 404, f"{operation_id} finds what is not there")
    today = datetime.date.today()
    check_whole("getUsage of a day", call("getUsage", from_=today - datetime.timedelta(days=1), to=datetime.datetime.now(datetime.timezone.utc)))


def main():
    pypi.enter()
    from server import Server, fresh_directory
    directory = fresh_directory()
    server = Server(directory)
    if not server.start():
        raise SystemExit("the server does not start:\n" + server.tail())
    try:
        document = served_document(server)
        generate(document, directory)
        import berth_client
        models = importlib.import_module("berth_client.models")
        call = Calls(document, berth_client.AuthenticatedClient(f"http://127.0.0.1:{server.port}", server.token))
        read_and_apply(call, models)
        submit_and_list(call, models)
        apply_prices(call, models)
        read_everything(call, document)
        run_the_example(server, directory)
    finally:
        server.stop()
    if not tally.failures:
        shutil.rmtree(directory, ignore_errors=True)
    print(tally.summary())
    sys.exit(1 if tally.failures else 0)


if __name__ == "__main__":
    main()

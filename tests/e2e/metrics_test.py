#!/usr/bin/env python3
"""GET /metrics of a real server, read by a strict parser of Prometheus' text format: every value is what the other views
of the same moment say, counters move with what happens, and a restart of the server begins them at zero."""
import http.client
import os
import re
import shutil
import subprocess
import sys
import traceback
from collections import Counter

from patience import eventually, stretched
from server import ROOT, Problem, Server, berth_binary, fresh_directory

CONFIG = """
cluster: measured
gpu_models:
  H100-SXM5-80GB: {weight: 1.0, memory: 80GiB}
queues:
  owner:
    guaranteed: {gpus: 4}
  rest:
    max: {gpus: 7.5}
    queues:
      borrower:
      strict: {policy: strict}
scheduling: {grace: 30s}
"""
TYPE = "text/plain; version=0.0.4; charset=utf-8"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
NUMBER = re.compile(r"-?\d+(\.\d+)?$")


class Family:
    def __init__(self, kind):
        self.kind = kind
        self.samples = {}  # (suffix, labels) to value


def unescape(text):
    return re.sub(r'\\(.)', lambda m: "\n" if m.group(1) == "n" else m.group(1), text)


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, f"not labels: {text}"
        assert found.group(1) not in labels, f"a label twice: {text}"
        labels[found.group(1)] = unescape(found.group(2))
        at = found.end()
        if at < len(text):
            assert text[at] == "," and at + 1 < len(text), f"not labels: {text}"
            at += 1
    return labels


def parse(text):
    """Families by name. Stricter than Prometheus: help and type once, in front, and samples of one family together."""
    assert text.endswith("\n"), "the last line does not end"
    families, current, helped = {}, None, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped, _, words = line[7:].partition(" ")
            assert re.fullmatch(NAME, helped) and helped not in families and words, line
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == helped and kind in ("counter", "gauge", "histogram"), line
            assert name.endswith("_total") == (kind == "counter"), line
            current = name
            families[name] = Family(kind)
        else:
            found = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? ([^ ]+)", line)
            assert found, f"not a sample: {line}"
            name, labels, value = found.groups()
            assert NUMBER.match(value), f"not a number: {line}"
            suffix = name.removeprefix(current or "")
            kind = families[current].kind
            assert name.startswith(current) and suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",)), line
            key = (suffix, frozenset(parse_labels(labels or "").items()))
            assert key not in families[current].samples, f"twice: {line}"
            families[current].samples[key] = float(value)
    for name, family in families.items():
        if family.kind == "histogram":
            check_histogram(name, family)
        if family.kind == "counter":
            assert all(value >= 0 for value in family.samples.values()), name
    return families


def check_histogram(name, family):
    series = {}
    for (suffix, labels), value in family.samples.items():
        plain = dict(labels)
        bound = plain.pop("le", None)
        assert (bound is not None) == (suffix == "_bucket"), (name, labels)
        one = series.setdefault(frozenset(plain.items()), {"buckets": []})
        if suffix == "_bucket":
            one["buckets"].append((float(bound), value))
        else:
            one[suffix] = value
    for labels, one in series.items():
        assert one["buckets"] == sorted(one["buckets"]), f"{name}: bounds do not ascend: {labels}"
        counts = [count for _, count in one["buckets"]]
        assert counts == sorted(counts), f"{name}: not cumulative: {labels} {counts}"
        assert one["buckets"][-1][0] == float("inf"), f"{name}: no +Inf: {labels}"
        assert counts[-1] == one["_count"] and one["_sum"] >= 0, f"{name}: {labels}"


class Scrape:
    def __init__(self, families):
        self.families = families

    def __call__(self, name, suffix="", **labels):
        return self.families[name].samples[(suffix, frozenset(labels.items()))]

    def by(self, name, *keys):
        """All samples of a family by these labels, which have to be all of its labels."""
        found = {}
        for (_, labels), value in self.families[name].samples.items():
            assert {key for key, _ in labels} == set(keys), (name, labels)
            found[tuple(dict(labels)[key] for key in keys)] = value
        return found


def get(server, token, path="/metrics"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(20))
    connection.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def scrape(server):
    answer, text = get(server, server.token)
    assert answer.status == 200 and answer.getheader("Content-Type") == TYPE, (answer.status, answer.getheader("Content-Type"))
    return Scrape(parse(text))


def views_of_one_moment(server):
    """The metrics and everything they are compared with, with no event in between."""
    def views():
        cluster = server.ask("GET", "/v1/cluster")
        metrics = scrape(server)
        jobs = server.all("/v1/jobs")
        queues = server.ask("GET", "/v1/queues")["items"]
        nodes = server.ask("GET", "/v1/nodes")["items"]
        last = server.ask("GET", "/v1/cluster")["seq"]
        return cluster["seq"] == metrics("berth_last_event_seq") == last and (metrics, cluster, jobs, queues, nodes)
    return eventually("events pause", views, every_s=0.1)


def compare(server):
    metrics, cluster, jobs, queues, nodes = views_of_one_moment(server)
    compare_fleet(metrics, cluster, nodes)
    compare_queues(metrics, queues)
    compare_jobs(metrics, cluster, jobs, queues)
    return metrics


def compare_fleet(metrics, cluster, nodes):
    gpus = Counter()
    states = Counter({state: 0 for state in ("ready", "cordoned", "draining", "maintenance", "unknown", "lost")})
    for node in nodes:
        closed = bool(node["cordoned"] or node["draining"] or node["status"] != "ready")
        states["draining" if node["draining"] else "cordoned" if node["cordoned"] else node["status"]] += 1
        for gpu in node["gpus"]:
            gpus[gpu["model"], "allocated"] += 1 - gpu["free"]
            gpus[gpu["model"], "idle"] += 0 if closed or not gpu["healthy"] else gpu["free"]
            gpus[gpu["model"], "foreign"] += 0  # this machine has none, and the state is told
            gpus[gpu["model"], "unavailable"] += gpu["free"] if closed or not gpu["healthy"] else 0
    assert metrics.by("berth_gpus", "model", "state") == gpus, (metrics.by("berth_gpus", "model", "state"), gpus)
    assert metrics.by("berth_nodes", "state") == {(state,): count for state, count in states.items()}
    assert sum(gpus.values()) == cluster["gpus"]
    allocated = sum(count for (_, state), count in gpus.items() if state == "allocated")
    assert allocated == cluster["gpus_allocated"]
    simulated = sum(gpu["simulated"] for node in nodes for gpu in node["gpus"])
    assert sum(metrics.by("berth_simulated_gpus", "model").values()) == simulated
    assert sum(metrics.by("berth_unhealthy_gpus", "model").values()) == cluster["gpus_unhealthy"]
    assert metrics("berth_stranded_gpus") == cluster["gpus_stranded"]
    assert abs(metrics("berth_fragmentation_ratio") - cluster["gpus_stranded"] / cluster["gpus"]) < 1e-5
    assert metrics("berth_fragmentation_alarm") == cluster["fragmentation_alarm"]


def compare_queues(metrics, queues):
    def stated(member):
        return {(queue["path"],): queue[member]["gpus"] for queue in queues if "gpus" in queue[member]}
    expected = {
        "berth_queue_guaranteed_gpus": stated("guaranteed"),
        "berth_queue_effective_guaranteed_gpus": stated("effective"),
        "berth_queue_max_gpus": stated("max"),
        "berth_queue_allocated_gpus": stated("usage"),
        "berth_queue_borrowed_gpus": {(queue["path"],): queue["borrowed_gpus"] for queue in queues},
        "berth_queue_nominated_gpus": {(queue["path"],): queue["nominated_gpus"] for queue in queues},
        "berth_queue_dominant_share_ratio": {(queue["path"],): float(queue["dominant_share"]) for queue in queues},
    }
    for name, values in expected.items():
        assert metrics.by(name, "queue") == values, (name, metrics.by(name, "queue"), values)
    described = {(q["path"], q["parent"], str(q["leaf"]).lower(), q["policy"]): 1 for q in queues}
    assert metrics.by("berth_queue_info", "queue", "parent", "leaf", "policy") == described
    for queue in queues:
        headroom = metrics("berth_queue_headroom_gpus", queue=queue["path"])
        idle = sum(v for (_, state), v in metrics.by("berth_gpus", "model", "state").items() if state == "idle")
        limits = [q["max"]["gpus"] - q["usage"]["gpus"] - q["nominated_gpus"] for q in queues
                  if "gpus" in q["max"] and (queue["path"] + "/").startswith(q["path"] + "/")]
        assert headroom == max(0, min([idle, *limits])), (queue["path"], headroom, idle, limits)


def compare_jobs(metrics, cluster, jobs, queues):
    leaves = [queue for queue in queues if queue["leaf"]]
    live = [job for job in jobs if job["kind"] not in ("service", "array")]
    phases = Counter({(q["path"], phase): 0 for q in leaves for phase in ("pending", "running", "stopping")})
    phases.update((job["queue"], job["phase"]) for job in live)
    assert metrics.by("berth_jobs", "queue", "phase") == phases, (metrics.by("berth_jobs", "queue", "phase"), phases)
    reasons = Counter((job["queue"], job.get("reason", "none")) for job in live if job["phase"] == "pending")
    assert metrics.by("berth_pending_jobs", "queue", "reason") == reasons, (metrics.by("berth_pending_jobs", "queue", "reason"), reasons)
    for queue in leaves:
        runs = phases[queue["path"], "running"] + phases[queue["path"], "stopping"]
        assert runs == queue["running"], queue
    assert sum(count for (_, phase), count in phases.items() if phase == "pending") == cluster["jobs_pending"]


def sleeper(queue, gpus, **more):
    return {"queue": queue, "gpus": gpus, "cpus": "0.1", "memory": "16MiB", "command": ["sleep", "600"], **more}


# Says when it is there, saves when it is asked to, and leaves.
LEAVES = ['sh', '-c', 'trap \'printf "{\\"attempt\\": %d, \\"step\\": 5, \\"time\\": 1}" $BERTH_ATTEMPT >$BERTH_CHECKPOINT_DIR/n; '
          'mv $BERTH_CHECKPOINT_DIR/n $BERTH_CHECKPOINT_DIR/ack.json; exit 0\' USR1; echo there; while :; do sleep 0.05; done']


class World:
    def __init__(self):
        self.directory = fresh_directory()
        config = os.path.join(self.directory, "cluster.yaml")
        with open(config, "w") as file:
            file.write(CONFIG)
        self.server = Server(self.directory, config)
        assert self.server.start(), self.server.tail()

    def submit(self, body):
        return self.server.ask("POST", "/v1/jobs", body)["id"]

    def job(self, number):
        return self.server.ask("GET", f"/v1/jobs/{number}")

    def wait_for_phase(self, number, *phases):
        self.server.wait_phase(number, *phases)


def an_idle_cluster_is_all_zero(world):
    metrics = compare(world.server)
    assert metrics("berth_gpus", model="H100-SXM5-80GB", state="idle") == 8
    assert metrics("berth_queue_headroom_gpus", queue="owner") == 8
    assert metrics("berth_queue_headroom_gpus", queue="rest/borrower") == 7.5
    assert metrics("berth_build_info", version=world.server.ask("GET", "/healthz")["version"]) == 1
    assert not metrics.families["berth_started_attempts_total"].samples


def reads_need_the_token(world):
    for token in ("", "wrong-0123456789abcdef"):
        answer, _ = get(world.server, token)
        assert answer.status == 401, answer.status


def a_preemption_is_seen_from_all_sides(world):
    server = world.server
    borrower = world.submit(sleeper("rest/borrower", 7, name="borrower", command=LEAVES,
                                    checkpoint={"on_signal": True, "signal": "SIGUSR1", "grace": "30s"}))
    eventually("its task runs", lambda: any(task["phase"] == "running" for task in world.job(borrower)["tasks"]))
    connection_log = f"/v1/jobs/{borrower}/logs"
    eventually("it says that it is there", lambda: "there" in raw(server, connection_log))
    running = compare(server)
    assert running("berth_queue_borrowed_gpus", queue="rest/borrower") == 7
    assert running("berth_started_attempts_total", **{"queue": "rest/borrower", "class": "training"}) == 1
    assert running("berth_evictions_total", queue="rest/borrower", cause="reclaim") == 0
    owner = world.submit(sleeper("owner", 4, name="owner", **{"class": "dev"}))
    compare(server)
    world.wait_for_phase(owner, "running")
    after = compare(server)
    assert after("berth_evictions_total", queue="rest/borrower", cause="reclaim") == 1
    assert after("berth_evictions_cancelled_total", queue="rest/borrower", cause="reclaim") == 0
    assert after("berth_eviction_seconds", "_count", cause="reclaim") == 1
    assert after("berth_ended_attempts_total", **{"queue": "rest/borrower", "class": "training", "outcome": "preempted"}) == 1
    assert after("berth_restarts_total", **{"queue": "rest/borrower", "class": "training"}) == 0
    assert after("berth_wait_seconds", "_count", **{"queue": "owner", "class": "dev"}) == 1
    assert after("berth_jobs", queue="rest/borrower", phase="pending") == 1
    story = world.job(borrower)["past"][0]
    lost = after("berth_lost_gpu_seconds_total", queue="rest/borrower", cause="reclaim")
    gone = after("berth_eviction_seconds", "_sum", cause="reclaim")
    assert story["checkpoint_step"] == 5 and abs(lost - 7 * gone) < 1e-6, (story, lost, gone)
    server.ask("DELETE", f"/v1/jobs/{owner}")
    world.wait_for_phase(borrower, "running")
    again = compare(server)
    assert again("berth_restarts_total", **{"queue": "rest/borrower", "class": "training"}) == 1
    assert again("berth_finished_jobs_total", **{"queue": "owner", "class": "dev", "outcome": "cancelled"}) == 1
    server.ask("DELETE", f"/v1/jobs/{borrower}")
    server.wait_idle()


def raw(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(20))
    connection.request("GET", path, headers={"Authorization": "Bearer " + server.token})
    text = connection.getresponse().read().decode(errors="replace")
    connection.close()
    return text


def whoever_waits_has_the_reason_that_the_list_says(world):
    server = world.server
    held = world.submit(sleeper("owner", 1, hold=True))
    running = world.submit(sleeper("owner", 6))
    world.wait_for_phase(running, "running")
    world.submit(sleeper("rest/borrower", 4))
    world.submit(sleeper("rest/borrower", 8))
    world.submit(sleeper("owner", 9))
    world.submit(sleeper("rest/strict", 5))
    world.submit(sleeper("rest/strict", 1))
    world.submit(sleeper("owner", 1, afterok=[running]))
    world.submit(sleeper("owner", 1, kind="service", tasks=2, **{"class": "inference"}))
    share = world.submit(sleeper("rest/borrower", 0.5))
    world.wait_for_phase(share, "running", "pending")
    server.ask("POST", "/v1/nodes/n1/cordon")
    metrics = compare(server)
    reasons = {reason for _, reason in metrics.by("berth_pending_jobs", "queue", "reason")}
    assert {"held", "never-fits", "behind-queue-head", "dependency", "quota-max"} <= reasons, reasons
    assert metrics("berth_gpus", model="H100-SXM5-80GB", state="idle") == 0
    assert metrics("berth_oldest_wait_seconds", queue="rest/strict") > 0
    refused = metrics.by("berth_refusals_total", "reason")
    assert refused[("never-fits",)] >= 1 and sum(refused.values()) <= metrics("berth_scheduling_attempts_total"), refused
    server.ask("POST", "/v1/nodes/n1/uncordon")
    compare(server)
    server.ask("POST", f"/v1/jobs/{held}/release")
    for job in server.all("/v1/jobs"):
        if "parent" not in job:
            server.ask("DELETE", f"/v1/jobs/{job['id']}")
    server.wait_idle()


def the_log_is_counted_as_the_server_says(world):
    metrics, cluster, *_ = views_of_one_moment(world.server)
    assert metrics("berth_log_events_total") == cluster["log"]["records"]
    assert metrics("berth_log_syncs_total") == cluster["log"]["fsyncs"]
    assert metrics("berth_cycles_total") == metrics("berth_cycle_seconds", "_count") > 0
    assert metrics("berth_append_seconds", "_count") > 0


def documents_name_what_is_served_and_all_of_it(world):
    families = scrape(world.server).families

    def named(path):
        with open(os.path.join(ROOT, path)) as file:
            text = file.read().split("## Metrics that were renamed")[0]
            found = set(re.findall(r"\bberth_[a-z0-9_]*[a-z0-9]\b", re.sub(r"\bberth_[a-z_]*\*", "", text)))
        return {re.sub("_(bucket|sum|count)$", "", name) if name not in families else name for name in found}
    assert named("docs/metrics.md") == set(families), named("docs/metrics.md") ^ set(families)
    for used in ("examples/prometheus/berth-rules.yml", "deploy/helm/berth/dashboards/berth-fleet.json"):
        names = named(used)
        assert len(names) > 10 and names <= set(families), (used, names - set(families))


def counters_begin_at_zero_with_the_server_and_gauges_go_on(world):
    server = world.server
    job = world.submit(sleeper("rest/borrower", 3))
    world.wait_for_phase(job, "running")
    before = compare(server)
    assert before("berth_submitted_jobs_total", **{"queue": "rest/borrower", "class": "training"}) > 1
    server.kill()
    assert server.start(), server.tail()
    after = compare(server)
    assert after("berth_submitted_jobs_total", **{"queue": "rest/borrower", "class": "training"}) == 0
    assert after("berth_started_attempts_total", **{"queue": "rest/borrower", "class": "training"}) == 0
    assert after("berth_queue_allocated_gpus", queue="rest/borrower") == 3
    server.ask("DELETE", f"/v1/jobs/{job}")
    server.wait_idle()
    ended = compare(server)
    assert ended("berth_finished_jobs_total", **{"queue": "rest/borrower", "class": "training", "outcome": "cancelled"}) == 1


def the_parser_refuses_what_is_malformed(world):
    good = "# HELP a_total x\n# TYPE a_total counter\na_total{q=\"x\"} 1\n"
    parse(good)
    histogram = "# HELP h x\n# TYPE h histogram\n" + "".join(
        f'h_bucket{{le="{le}"}} {count}\n' for le, count in (("1", 1), ("+Inf", 2))) + "h_sum 3\nh_count 2\n"
    parse(histogram)
    for bad in (good[:-1], good + good, good.replace("# HELP a_total x\n", ""), good.replace(" 1\n", " one\n"),
                good + "a_total{q=\"x\"} 2\n", good.replace("counter", "gauge"), good.replace('"x"', '"x'),
                good.replace('"x"', '"\\q"'), good.replace('="x"', '="x",q="y"'), good + "b 1\n",
                histogram.replace("h_count 2", "h_count 3"), histogram.replace('le="1"} 1', 'le="1"} 3'),
                histogram.replace('h_bucket{le="+Inf"} 2\n', "")):
        try:
            parse(bad)
        except AssertionError:
            continue
        raise AssertionError(f"this was taken for good:\n{bad}")


def the_documented_token_reads_the_metrics_and_nothing_else(world):
    """One command makes it, and stands in each document that speaks of it; the test runs it as it stands there."""
    command = "berth token create prometheus --role metrics --queue / --expires 365d"
    for page in ("docs/metrics.md", "docs/install-managed.md", "examples/prometheus/prometheus.yml", "deploy/helm/berth/values.yaml"):
        with open(os.path.join(ROOT, page)) as file:
            assert command in file.read(), page
    server = world.server
    environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}", "BERTH_TOKEN": server.token}
    ran = subprocess.run([berth_binary(), *command.split()[1:]], capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    token = ran.stdout.split()[-1]
    answer, text = get(server, token)
    assert answer.status == 200, text
    parse(text)
    for path in ("/v1/cluster", "/v1/nodes", "/v1/events", "/v1/config", "/v1/audit", "/v1/usage", "/v1/capacity", "/v1/snapshot",
                 "/v1/tokens", "/v1/advice", "/v1/diagnosis", "/v1/jobs", "/v1/queues", "/v1/bill"):
        assert get(server, token, path)[0].status == 403, path
    assert get(server, token, "/v1/queues/rest")[0].status == 404, "a queue that one may not see is not there"
    viewer = server.ask("POST", "/v1/tokens", {"name": "looks", "role": "viewer", "expires_in_s": 600})["token"]
    answer, text = get(server, viewer)
    assert answer.status == 403 and "that takes the role metrics" in text, text
    try:
        server.ask("POST", "/v1/tokens", {"name": "part", "role": "metrics", "queue": "rest", "expires_in_s": 600})
        raise AssertionError("a role that reaches nothing was given")
    except Problem as refused:
        assert "at the root alone" in str(refused), refused
    for name in ("prometheus", "looks"):
        server.ask("DELETE", f"/v1/tokens/{name}")


STORY = [the_parser_refuses_what_is_malformed, an_idle_cluster_is_all_zero, reads_need_the_token,
         a_preemption_is_seen_from_all_sides, whoever_waits_has_the_reason_that_the_list_says,
         the_log_is_counted_as_the_server_says, documents_name_what_is_served_and_all_of_it, counters_begin_at_zero_with_the_server_and_gauges_go_on,
         the_documented_token_reads_the_metrics_and_nothing_else]


def main():
    world = World()
    passed, failed = 0, 0
    try:
        for rule in STORY:
            try:
                rule(world)
                passed += 1
            except Exception:  # noqa: BLE001: the next rule is asked all the same
                failed += 1
                print("FAILED:", rule.__name__.replace("_", " "))
                traceback.print_exc()
    finally:
        for job in world.server.all("/v1/jobs"):
            world.server.ask("DELETE", f"/v1/jobs/{job['id']}") if "parent" not in job else None
        world.server.wait_idle()
        world.server.stop()
    if failed == 0:
        shutil.rmtree(world.directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

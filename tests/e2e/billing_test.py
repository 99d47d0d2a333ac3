#!/usr/bin/env python3
"""Prices and bills on a real server: a price book is compared, applied and refused with the place of its mistakes; a bill
adds up, is tried with other prices, is a used-up budget stops starts and kills nothing."""
import datetime
import json
import os
import shutil
import subprocess
import sys
import time
import traceback

from server import Server, berth_binary, fresh_directory

CONFIG = """cluster: test
queues:
  red: {guaranteed: {gpus: 4}}
  blue: {budget: {gpu_hours: 0.001, when_used_up: stop-starting}}
"""
PRICES = """currency: EUR
prices:
  - valid_from: 2020-01-01
    gpus: {%s: {floor: 2.5, burst: 3}}
    lending_credit: 50
"""


def started():
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config)
    assert server.start(), server.tail()
    return server


def discard(server):
    server.kill()
    shutil.rmtree(server.directory, ignore_errors=True)


def berth(server, *words):
    environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}",
                   "BERTH_TOKEN_FILE": os.path.join(server.data, "token")}
    return subprocess.run([berth_binary(), *words], capture_output=True, text=True, env=environment)


def price_file(server, name, text):
    path = os.path.join(server.directory, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def model_of(server):
    return server.ask("GET", "/v1/nodes")["items"][0]["gpus"][0]["model"]


def bill(server, *words):
    run = berth(server, "bill", "-o", "json", *words)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def a_bill_adds_up_and_is_tried_with_other_prices(server):
    model = model_of(server)
    assert "no prices are in force" in berth(server, "bill").stderr
    wrong = berth(server, "prices", "apply", price_file(server, "wrong.yaml", PRICES.replace("2.5", "-2.5") % model))
    assert "wrong.yaml:4:" in wrong.stderr and "is negative" in wrong.stderr, wrong.stderr
    other = berth(server, "prices", "apply", price_file(server, "model.yaml", PRICES % "NO-SUCH"))
    assert model in other.stderr, other.stderr
    good = price_file(server, "prices.yaml", PRICES % model)
    assert berth(server, "prices", "diff", good).returncode == 1
    assert "version 1" in berth(server, "prices", "apply", good).stdout
    assert berth(server, "prices", "diff", good).returncode == 0
    server.ask("POST", "/v1/jobs", {"queue": "red", "gpus": 2, "command": ["sleep", "60"]})
    time.sleep(2)
    whole = bill(server)
    assert whole["total_micro"] == sum(row["amount_micro"] for row in whole["items"])
    assert whole["total_micro"] > 0
    # A cluster that is a few seconds old is expected to cost what it costs for the rest of the month, too.
    begin, end = (datetime.datetime.fromisoformat(whole[key].replace("Z", "+00:00")) for key in ("from", "to"))
    month_end = (begin + datetime.timedelta(days=32)).replace(day=1)
    if month_end - end > datetime.timedelta(hours=12):
        assert whole["expected_micro"] > 20 * whole["total_micro"], whole
    for one in whole["fleet"]:
        assert sum(one[key] for key in one if key not in ("gpu_model", "capacity")) == one["capacity"], one
    assert {row["name"] for row in bill(server, "red", "--by", "kind")["items"]} >= {"floor-used", "floor-idle"}
    double = price_file(server, "double.yaml", PRICES.replace("2.5", "5").replace("burst: 3", "burst: 6") % model)
    assert bill(server, "--prices", double)["total_micro"] > whole["total_micro"]
    assert "total" in berth(server, "bill", "red").stdout
    month = whole["month"]
    assert "ends at" in berth(server, "bill", "--close", "--month", month).stderr


def a_budget_that_is_used_up_stops_starts_and_kills_nothing(server):
    job = {"queue": "blue", "gpus": 2, "command": ["sleep", "60"]}
    first = server.ask("POST", "/v1/jobs", job)["id"]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        marks = [event for event in server.ask("GET", "/v1/events?from=1&limit=1000")["items"]
                 if event["kind"] == "budget-marked" and event["percent"] == 100]
        if marks:
            break
        time.sleep(0.5)
    assert marks, "no mark of the budget"
    second = server.ask("POST", "/v1/jobs", job)["id"]
    time.sleep(1)
    assert server.ask("GET", f"/v1/jobs/{first}")["phase"] == "running"
    why = berth(server, "why", str(second)).stdout
    assert "budget of queue blue is used up until" in why, why


def main():
    cases = [a_bill_adds_up_and_is_tried_with_other_prices, a_budget_that_is_used_up_stops_starts_and_kills_nothing]
    failed = 0
    for case in cases:
        server = started()
        try:
            case(server)
            print("passed:", case.__name__.replace("_", " "))
        except Exception:
            failed += 1
            print("FAILED:", case.__name__.replace("_", " "))
            traceback.print_exc()
        finally:
            discard(server)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""`berth invoice -o focus` on a real server, checked by PyPI's focus-validator 1.0.0: every rule of FOCUS 1.0 that it has
passes. Five of its rules ask for columns of earlier drafts, which FOCUS 1.0 calls otherwise; those are named here."""
import csv
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from decimal import Decimal

import pypi
from server import Server, berth_binary, fresh_directory

REQUIREMENTS = "requirements-focus.txt"
# Rules of the validator that are not of FOCUS 1.0, and what the columns are called there.
NOT_OF_FOCUS_1_0 = {
    "InvoiceIssuer_Required": "InvoiceIssuerName",
    "Provider_Required": "ProviderName",
    "Publisher_Required": "PublisherName",
    "ResourceID_Required": "ResourceId",
    "SkuPriceId_Nullable": "it looks for ChargeType, which is ChargeCategory",
}
CONFIG = """cluster: test
queues:
  red: {guaranteed: {gpus: 4}}
  blue: {}
"""
PRICES = """currency: EUR
prices:
  - valid_from: 2020-01-01
    gpus: {%s: {floor: 2.5, burst: 3}}
    cpu_core: 0.02
    memory_gib: 0.003
    lending_credit: 50
    adjustments: {batch: -20, exclusive: 10}
"""


def validate(path):
    """The rules of the validator, as {name: what failed or None}."""
    report = path + ".xml"
    packages = os.path.join(pypi.venv(REQUIREMENTS), "lib", f"python3.{sys.version_info.minor}", "site-packages")
    run = subprocess.run([pypi.program("focus-validator", REQUIREMENTS), "--data-file", path, "--validate-version", "1.0",
                          "--output-type", "unittest", "--output-destination", report],
                         capture_output=True, text=True, cwd=packages, timeout=300)
    assert os.path.exists(report), run.stdout + run.stderr
    rules = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        failure = case.find("failure")
        rules[case.get("name").split(" ")[0]] = None if failure is None else failure.get("message") or failure.text
    return rules


def failures(path):
    rules = validate(path)
    assert len(rules) > 100, rules
    return {name: why for name, why in rules.items() if why is not None and name not in NOT_OF_FOCUS_1_0}


def berth(server, *words):
    environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}",
                   "BERTH_TOKEN_FILE": os.path.join(server.data, "token")}
    return subprocess.run([berth_binary(), *words], capture_output=True, text=True, env=environment)


def check(server):
    model = server.ask("GET", "/v1/nodes")["items"][0]["gpus"][0]["model"]
    prices = os.path.join(server.directory, "prices.yaml")
    with open(prices, "w") as file:
        file.write(PRICES % model)
    assert berth(server, "prices", "apply", prices).returncode == 0
    jobs = [{"queue": "red", "gpus": 1, "labels": {"model": "llama, \"big\""}}, {"queue": "blue", "gpus": 2, "class": "batch"},
            {"queue": "blue", "gpus": 2, "name": "=1+1"}, {"queue": "blue", "gpus": 2, "user": "ann"}]
    ids = [server.ask("POST", "/v1/jobs", {"command": ["sleep", "600"], "cpus": 0.1, "memory": "64MiB", **job})["id"] for job in jobs]
    for job in ids:
        server.wait_phase(job, "running")
    server.pass_time(2)
    run = berth(server, "invoice", "-o", "focus")
    assert run.returncode == 0, run.stderr
    path = os.path.join(server.directory, "focus.csv")
    with open(path, "w", newline="") as file:
        file.write(run.stdout)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    found = failures(path)
    assert not found, found
    print(f"passed: {len(rows)} rows, {len(validate(path))} rules, {len(NOT_OF_FOCUS_1_0)} of them not of FOCUS 1.0")
    assert {row["ChargeCategory"] for row in rows} == {"Usage", "Credit", "Adjustment"}, rows
    assert {"Used", "Unused"} <= {row["CommitmentDiscountStatus"] for row in rows}
    total = server.ask("GET", "/v1/bill?invoice=focus")
    assert sum(Decimal(row["BilledCost"]) for row in csv.DictReader(total["document"].splitlines())) == Decimal(total["total"])
    print("passed: the rows add up to the bill")
    # The validator finds what is wrong: a currency and a frequency that there are not.
    wrong = path + ".wrong.csv"
    with open(wrong, "w", newline="") as file:
        file.write(run.stdout.replace(",EUR,", ",euros,", 1).replace(",Usage-Based,", ",Sometimes,", 1))
    found = failures(wrong)
    assert any(name.startswith("BillingCurrency") for name in found), found
    assert any(name.startswith("ChargeFrequency") for name in found), found
    print("passed: and the validator finds a wrong currency and frequency")


def main():
    pypi.enter(REQUIREMENTS)
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    server = Server(directory, config)
    try:
        assert server.start(), server.tail()
        check(server)
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    print("3 passed, 0 failed, 0 skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())

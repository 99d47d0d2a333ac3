#!/usr/bin/env python3
"""Prices and bills on a real server: a price book is compared, applied and refused with the place of its mistakes; a bill
adds up, is tried with other prices, is a used-up budget stops starts and kills nothing; a grant ends at its end."""
import csv
import datetime
import io
import json
import os
import subprocess
import sys
import traceback
from decimal import Decimal

import debian
from patience import eventually
from server import Problem, berth_binary, discard, start_with

skipped = 0

GREEN = "green: {budget: {money: 1000000, when_used_up: tell}}"
CONFIG = f"""cluster: test
queues:
  red: {{guaranteed: {{gpus: 4}}}}
  blue: {{budget: {{gpu_hours: 0.002, when_used_up: stop-starting}}}}
  {GREEN}
"""
PRICES = """currency: EUR
prices:
  - valid_from: 2020-01-01
    gpus: {%s: {floor: 2.5, burst: 3}}
    lending_credit: 50
"""


def started():
    return start_with(CONFIG)


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


def run_for(server, seconds, *specs):
    """Submits these jobs, and so long a time passes in which all of them run; returns their ids."""
    jobs = [server.ask("POST", "/v1/jobs", {"command": ["sleep", "600"], **spec})["id"] for spec in specs]
    for job in jobs:
        server.wait_phase(job, "running")
    server.pass_time(seconds)
    return jobs


def marks(server, **wanted):
    """The marks of budgets and grants of which this is true."""
    return [event for event in server.all_events() if event["kind"] == "budget-marked"
            and all(event.get(key) == value for key, value in wanted.items())]


def a_bill_adds_up_and_is_tried_with_other_prices(server):
    model = model_of(server)
    assert "no prices are in force" in berth(server, "bill").stderr
    wrong = berth(server, "prices", "apply", price_file(server, "wrong.yaml", PRICES.replace("2.5", "-2.5") % model))
    assert "wrong.yaml:4:" in wrong.stderr and "is negative" in wrong.stderr, wrong.stderr
    other = berth(server, "prices", "apply", price_file(server, "model.yaml", PRICES % "NO-SUCH"))
    assert "model.yaml:4:11: prices[0].gpus: nodes have GPUs of " + model in other.stderr, other.stderr
    dollars = price_file(server, "dollars.yaml", PRICES.replace("EUR", "USD") % model)
    good = price_file(server, "prices.yaml", PRICES % model)
    assert berth(server, "prices", "diff", good).returncode == 1
    assert "version 1" in berth(server, "prices", "apply", good).stdout
    assert berth(server, "prices", "diff", good).returncode == 0
    currency = berth(server, "prices", "apply", dollars)
    assert "dollars.yaml:1:11: currency: the budget of queue green is in EUR" in currency.stderr, currency.stderr
    later = price_file(server, "later.yaml", PRICES.replace("2020-01-01", "2999-01-01") % model)
    for words in (("apply",), ("diff",)):
        refused = berth(server, "prices", *words, later)
        assert refused.returncode not in (0, 1), refused.stdout
        assert "later.yaml:3:17: prices[0].valid_from: prices begin at 2999-01-01, and 20" in refused.stderr, refused.stderr
    run_for(server, 2, {"queue": "red", "gpus": 2})
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
    assert "was over before the first event of the log" in berth(server, "bill", "--close", "--month", "1970-01").stderr


def an_invoice_as_csv_and_as_a_journal_adds_up_to_its_total(server):
    assert "no prices are in force" in berth(server, "invoice").stderr
    prices = price_file(server, "prices.yaml", PRICES % model_of(server))
    assert berth(server, "prices", "apply", prices).returncode == 0
    run_for(server, 2, {"queue": "red", "gpus": 2, "name": "=1+1"})
    for form in ("csv", "html", "hledger"):
        target = f"/v1/bill?queue=red&invoice={form}"
        answer = server.ask("GET", target)
        text, total = answer["document"], Decimal(answer["total"])
        assert total > 0
        if form == "csv":
            assert sum(Decimal(row["amount"]) for row in csv.DictReader(io.StringIO(text))) == total, text
        elif form == "html":
            assert answer["total"] in text, text
        else:
            amounts = [line.split() for line in text.splitlines() if line.startswith("    ") and "EUR" in line]
            assert sum(Decimal(words[1]) for words in amounts) == 0, text
            assert {words[0]: Decimal(words[1]) for words in amounts}["liabilities:berth"] == -total, text
            check_journal(server, text)
        shown = berth(server, "invoice", "red", "-o", form)
        assert shown.returncode == 0 and len(shown.stdout) > 100, shown.stderr
    lines = json.loads(berth(server, "invoice", "red", "-o", "json").stdout)
    assert sum(line["amount_micro"] for line in lines["lines"]) == lines["total_micro"]
    assert "not closed" in berth(server, "invoice").stdout
    assert berth(server, "invoice", "nosuch").returncode == 3


def what_runs_off_peak_is_discounted_by_a_line_of_its_own(server):
    """A window of all hours, so that what runs now lies in it."""
    always = PRICES + "    off_peak: [{%s}]\n"
    for wrong, place, what in (
            ("zone: Europe/Pariss, discount: 30", "off_peak[0].zone", "is no time zone"),
            ("zone: UTC, discount: 30}, {from: 23:00, zone: Asia/Tokyo, discount: 9", "off_peak[1]", "overlaps off_peak[0]"),
            ("zone: UTC, discount: 30, to: '23:59:60'", "off_peak[0].to", "is no time of day")):
        refused = berth(server, "prices", "apply", price_file(server, "wrong.yaml", always % (model_of(server), wrong)))
        assert refused.returncode != 0 and f"prices[0].{place}: " in refused.stderr and what in refused.stderr, refused.stderr
        assert "wrong.yaml:6:" in refused.stderr, refused.stderr  # the place in the file, whichever side finds it
    good = price_file(server, "night.yaml", always % (model_of(server), "zone: Europe/Paris, discount: 30"))
    applied = berth(server, "prices", "apply", good)
    assert applied.returncode == 0, applied.stderr
    assert berth(server, "prices", "diff", good).returncode == 0
    assert "zone: Europe/Paris" in berth(server, "prices").stdout
    run_for(server, 2, {"queue": "green", "gpus": 1})
    answer = server.ask("GET", "/v1/bill?queue=green&invoice=lines")
    burst, off = ([line for line in answer["lines"] if line["kind"] == kind] for kind in ("burst", "discount"))
    assert len(burst) == len(off) == 1 and off[0]["cause"] == "off_peak", answer
    assert abs(off[0]["amount_micro"] + burst[0]["amount_micro"] * 3 // 10) <= 1, answer
    assert off[0]["quantity"] == burst[0]["quantity"] and answer["total_micro"] > 0, answer
    for form in ("csv", "hledger", "focus"):
        assert "discount" in server.ask("GET", f"/v1/bill?queue=green&invoice={form}")["document"], form
    cost = json.loads(berth(server, "submit", "--cost", "--queue", "green", "--gpus", "1", "--time-limit", "1h", "-o", "json",
                            "--", "true").stdout)["cost"][0]
    assert cost["burst"] == "2.1000", cost


def what_others_measure_is_on_the_bill_once(server):
    """Storage and egress of this month, by a file and by options; sent again they count once."""
    book = PRICES + "    quantities: {storage: {unit: GiB-hours, price: 0.000137}, egress: {unit: GiB, price: 0.05}}\n"
    assert "no prices are in force" in report(server, "r-0", "storage", 1).stderr
    prices = price_file(server, "prices.yaml", book % model_of(server))
    assert berth(server, "prices", "apply", prices).returncode == 0
    month = server.ask("GET", "/v1/bill")["month"]
    text = "quantities:\n" + "".join(
        "  - {id: nas-%d, queue: red, kind: storage, quantity: %d, from: %s-01, to: '%s-01T00:00:00.%03dZ'}\n"
        % (i, 1000 * i, month, month, i) for i in (1, 2, 3))
    usage = price_file(server, "usage.yaml", text)
    first = berth(server, "quantities", "report", usage)
    assert first.returncode == 0 and "3 reports on the bill" in first.stdout, first.stderr
    assert "0 reports on the bill; 3 counted before" in berth(server, "quantities", "report", usage).stdout
    assert report(server, "egress-1", "egress", 7).returncode == 0
    for wrong, what in ((("egress-1", "egress", 8), "id: egress-1 was reported as 7 GiB of egress for queue red"),
                        (("r-2", "tape", 1), "known are egress (GiB), storage (GiB-hours)"),
                        (("r-3", "egress", 10 ** 12), "would cost more than 10000000")):
        refused = report(server, *wrong)
        assert refused.returncode != 0 and what in refused.stderr, refused.stderr
    wrong = price_file(server, "wrong.yaml", text.replace("quantity: 2000", "quantity: -2000"))
    assert "wrong.yaml:3:" in berth(server, "quantities", "report", wrong).stderr
    unit = report(server, "r-4", "egress", 1, "--unit", "GB")
    assert "is priced by GiB, not by 'GB'" in unit.stderr, unit.stderr
    listed = json.loads(berth(server, "quantities", "list", "--kind", "storage", "--month", month, "-o", "json").stdout)
    assert [one["id"] for one in listed] == ["nas-1", "nas-2", "nas-3"], listed
    assert "egress-1" in berth(server, "quantities").stdout
    answer = server.ask("GET", "/v1/bill?queue=red&by=kind&invoice=lines")
    lines = [line for line in answer["lines"] if line["kind"] == "reported"]
    assert {line["note"]: line["amount"] for line in lines} == {
        "nas-1": "0.1370", "nas-2": "0.2740", "nas-3": "0.4110", "egress-1": "0.3500"}, lines
    assert answer["total_micro"] == sum(line["amount_micro"] for line in answer["lines"])
    document = server.ask("GET", "/v1/bill?queue=red&invoice=focus")["document"]
    rows = [row for row in csv.DictReader(io.StringIO(document)) if row["SkuId"].startswith("reported:")]
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("1.172"), rows
    assert {row["ServiceCategory"] for row in rows} == {"Storage", "Networking"}, rows
    journal = server.ask("GET", "/v1/bill?queue=red&invoice=hledger")["document"]
    assert "expenses:compute:red:reported:storage  0.8220 EUR" in journal, journal
    check_journal(server, journal)
    without = book.replace(", egress: {unit: GiB, price: 0.05}", "") % model_of(server)
    refused = berth(server, "prices", "apply", price_file(server, "less.yaml", without))
    assert refused.returncode != 0 and "less.yaml:3:5: prices[0].quantities.egress: report egress-1 of" in refused.stderr, \
        refused.stderr
    line = next(line["id"] for line in lines if line["note"] == "egress-1")
    assert "quantity-reported" in berth(server, "bill", "--line", line).stdout
    assert "quantity-reported" in json.dumps(server.ask("GET", f"/v1/bill/lines/{line}"))


def report(server, name, kind, quantity, *words):
    now = datetime.datetime.now(datetime.timezone.utc)
    return berth(server, "quantities", "report", "--id", name, "--queue", "red", "--kind", kind, "--quantity", str(quantity),
                 "--from", now.strftime("%Y-%m-01T00:00:00Z"), "--to", now.strftime("%Y-%m-01T00:00:00.001Z"), *words)


def a_correction_with_a_key_counts_once(server):
    prices = price_file(server, "prices.yaml", PRICES % model_of(server))
    assert berth(server, "prices", "apply", prices).returncode == 0
    month = server.ask("GET", "/v1/bill")["month"]
    words = ("bill", "red", "--month", month, "--correct", "-12.5", "--reason", "a node was lost")
    before = berth(server, *[word.replace(month, "2020-02") for word in words])
    assert "2020-02 was over before the first event of the log" in before.stderr, before.stderr
    job = server.ask("POST", "/v1/jobs", {"queue": "green", "command": ["true"]})["id"]
    foreign = berth(server, *words, "--job", str(job))
    assert f"job {job} is of queue green, which is not below red" in foreign.stderr, foreign.stderr
    assert "no such job 99999" in berth(server, *words, "--job", "99999").stderr
    assert "100000000 at most" in berth(server, *[word.replace("-12.5", "200000000") for word in words]).stderr
    first = berth(server, *words, "--key", "refund-7")
    again = berth(server, *words, "--key", "refund-7")
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert "by an earlier request" in again.stdout and "earlier" not in first.stdout, again.stdout
    other = berth(server, *[word.replace("-12.5", "-13") for word in words], "--key", "refund-7")
    assert other.returncode != 0 and f"-12.5000 for {month} on queue red" in other.stderr, other.stderr
    assert berth(server, *words).returncode == 0  # a key of its own
    lines = [line for line in server.ask("GET", "/v1/bill?queue=red&invoice=lines")["lines"] if line["kind"] == "correction"]
    assert [line["amount"] for line in lines] == ["-12.5000", "-12.5000"], lines
    opened = berth(server, "bill", "--line", lines[0]["id"]).stdout
    assert "a node was lost: -12.5000 EUR" in opened and "bill-corrected" in opened, opened
    config = price_file(server, "no-money.yaml", CONFIG.replace("{budget: {money: 1000000, when_used_up: tell}}", "{}"))
    assert berth(server, "apply", "-f", config).returncode == 0
    dollars = price_file(server, "dollars.yaml", PRICES.replace("EUR", "USD") % model_of(server))
    currency = berth(server, "prices", "apply", dollars)
    assert f"currency: the bill of {month}, which is not closed, has corrections in EUR" in currency.stderr, currency.stderr


def a_lender_is_not_told_who_borrowed(server):
    """The idle floor of red is lent to blue: the finance of red sees that it was lent, and not to whom."""
    prices = price_file(server, "prices.yaml", PRICES % model_of(server))
    assert berth(server, "prices", "apply", prices).returncode == 0
    run_for(server, 2, *[{"queue": "green", "gpus": 2, "name": "hidden"}] * 4)
    token = server.ask("POST", "/v1/tokens", {"name": "f", "role": "finance", "queue": "red", "expires_in_s": 600})["token"]
    def borrowers(answer):
        return {line["borrower"] for line in answer["lines"] if line["borrower"]}

    assert borrowers(server.ask("GET", "/v1/bill?queue=red&invoice=lines")) == {"green"}
    admins, server.token = server.token, token
    assert borrowers(server.ask("GET", "/v1/bill?queue=red&invoice=lines")) == {"another queue"}
    for form in ("csv", "html", "hledger"):
        document = server.ask("GET", f"/v1/bill?invoice={form}")["document"]
        assert "green" not in document and "hidden" not in document, document
        assert "part" in document, document  # of the whole cluster it sees only red
        assert "part" not in server.ask("GET", f"/v1/bill?queue=red&invoice={form}")["document"]
    assert server.ask("GET", "/v1/bill")["partial"] and not server.ask("GET", "/v1/bill?queue=red")["partial"]
    server.token = admins


def every_line_opens_down_to_its_events(server):
    prices = price_file(server, "prices.yaml", PRICES % model_of(server))
    assert berth(server, "prices", "apply", prices).returncode == 0
    short = server.ask("POST", "/v1/jobs", {"queue": "red", "gpus": 2, "command": ["sleep", "1"]})["id"]
    run_for(server, 1, *[{"queue": "green", "gpus": 2}] * 3)
    server.wait_phase(short, "finished")
    lines = server.ask("GET", "/v1/bill?invoice=lines")["lines"]
    assert {line["kind"] for line in lines} >= {"floor-used", "floor-idle", "floor-lent", "lending-credit", "burst"}
    for line in lines:
        opened = server.ask("GET", f"/v1/bill/lines/{line['id']}")
        stretches = opened["stretches"]
        assert sum(one["amount_micro"] for one in stretches) == opened["line"]["amount_micro"], opened
        assert all(one["to"] <= two["from"] for one, two in zip(stretches, stretches[1:])), opened
        assert {one[edge] for one in stretches for edge in ("began", "ended")} <= {0, *(e["seq"] for e in opened["events"])}
        if line["job"]:
            assert {event["job"] for event in opened["events"]} == {line["job"]}, opened
    used = next(line for line in lines if line["job"] == short and line["kind"] == "floor-used")
    shown = berth(server, "bill", "--line", used["id"])
    assert "attempt-started" in shown.stdout and "attempt-ended" in shown.stdout, shown.stdout + shown.stderr
    assert f"together {used['amount']} EUR" in shown.stdout, shown.stdout
    assert used["id"] in berth(server, "invoice").stdout
    assert berth(server, "bill", "--line", "1-000000000000").returncode == 3
    assert "is no line" in berth(server, "bill", "--line", "red").stderr
    token = server.ask("POST", "/v1/tokens", {"name": "f", "role": "finance", "queue": "blue", "expires_in_s": 600})["token"]
    admins, server.token = server.token, token
    try:
        server.ask("GET", f"/v1/bill/lines/{used['id']}")
        raise AssertionError("a line of another queue is shown")
    except Problem as refused:
        assert refused.status == 404, refused  # as if it were not there
    server.token = admins


def check_journal(server, text):
    global skipped
    try:
        hledger = os.path.join(debian.fetched(["hledger"]), "usr/bin/hledger")
    except debian.NotToBeHad as problem:
        skipped += 1
        print("SKIPPED: hledger check:", problem)
        return
    journal = price_file(server, "invoice.journal", text)
    run = subprocess.run([hledger, "-f", journal, "check", "--strict"], capture_output=True, text=True,
                         env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert run.returncode == 0, run.stderr + text


def a_budget_that_is_used_up_stops_starts_and_kills_nothing(server):
    job = {"queue": "blue", "gpus": 2, "command": ["sleep", "600"]}
    first, = run_for(server, 4, job)
    eventually("the budget is marked as used up", lambda: marks(server, percent=100))
    second = server.ask("POST", "/v1/jobs", job)["id"]
    eventually("the second waits for it", lambda: "budget of queue blue is used up until" in berth(server, "why", str(second)).stdout)
    assert server.job(first)["phase"] == "running"
    lower = server.ask("GET", "/v1/config")["config"]
    lower["queues"]["blue"]["budget"]["gpu_hours"] = 0.001
    renamed = server.ask("GET", "/v1/config")["config"]
    renamed["queues"]["azure"] = {**renamed["queues"].pop("blue"), "moved_from": "blue", "budget": {"gpu_hours": 0.001}}
    for name, config in (("blue", lower), ("azure", renamed)):
        for method, path in (("PUT", "/v1/config"), ("POST", "/v1/config/diff")):
            try:
                told = server.ask(method, path, config)["refusal"]
            except Problem as refused:
                assert refused.status == 400, refused
                told = str(refused)
            assert f"{name}'.budget.gpu_hours: 0.001 is less than was used since" in told, told
    looser = server.ask("GET", "/v1/config")["config"]
    looser["queues"]["blue"]["budget"]["when_used_up"] = "tell"
    assert server.ask("PUT", "/v1/config", looser)["version"] > 1


def budgets_are_watched_where_a_model_has_no_price(server):
    """The node comes back with GPUs of another model: bills cannot be made, and only budgets in money wait for a price."""
    prices = price_file(server, "prices.yaml", PRICES % model_of(server))
    assert berth(server, "prices", "apply", prices).returncode == 0
    assert "budgets" not in berth(server, "status").stdout
    server.kill()
    server.gpus = "8xA100-SXM4-80GB"
    assert server.start(), server.tail()
    model = model_of(server)
    assert "A100" in model, model
    run_for(server, 4, {"queue": "blue", "gpus": 2})
    assert eventually("the budget in GPU-hours is watched", lambda: marks(server, percent=100))[0]["queue"] == "blue"
    status = berth(server, "status").stdout
    assert f"budgets in money are not watched: GPUs of model {model} were there" in status, status
    assert model in berth(server, "bill").stderr
    assert berth(server, "prices", "apply", price_file(server, "both.yaml", PRICES.replace(
        "%s", "H100-SXM5-80GB: {floor: 1, burst: 2}, " + model) )).returncode == 0
    eventually("budgets in money are watched again", lambda: "budgets in money are not watched" not in berth(server, "status").stdout)


def a_grant_ends_at_its_end_and_kills_nothing(server):
    now = datetime.datetime.now(datetime.timezone.utc)
    until = now + datetime.timedelta(seconds=60)  # of which this test passes most
    at_end = until.strftime("%Y-%m-%dT%H:%M:%S.") + f"{until.microsecond // 1000:03}Z"

    def apply(grant):
        return berth(server, "apply", "--file", price_file(server, "granted.yaml",
                                                 CONFIG.replace(GREEN, "green: {grant: {%s}}" % grant)))

    period = f"from: {now:%Y-%m-%d}, until: {at_end}, when_used_up: stop-starting"
    early = apply(f"gpu_hours: 5, from: 2020-01-01, until: {at_end}")
    assert early.returncode != 0 and "queue 'green'.grant.from: 2020-01-01" in early.stderr, early.stderr
    paid = apply(f"money: 5, {period}")
    assert paid.returncode != 0 and "no prices are in force" in paid.stderr, paid.stderr
    backwards = apply("gpu_hours: 5, from: 2026-12-01, until: 2026-11-01")
    assert "granted.yaml:5:" in backwards.stderr and "lies not after from" in backwards.stderr, backwards.stderr
    applied = apply(f"gpu_hours: 1000, {period}")
    assert applied.returncode == 0, applied.stderr
    shown = berth(server, "config").stdout
    assert at_end in shown, shown
    job = {"queue": "green", "gpus": 2, "command": ["sleep", "600"]}
    first, = run_for(server, 0, job)
    assert marks(server) == []
    server.pass_time(60)
    ends = eventually("the grant has ended", lambda: marks(server, ended=True))
    assert len(ends) == 1 and ends[0]["of"] == "grant" and ends[0]["until"] == at_end, ends
    late = datetime.datetime.fromisoformat(ends[0]["time"].replace("Z", "+00:00")) - until
    assert late >= datetime.timedelta(milliseconds=-1), late
    second = server.ask("POST", "/v1/jobs", job)["id"]
    eventually("the second waits for it", lambda: "the grant of queue green ended on " + at_end in berth(server, "why", str(second)).stdout)
    assert server.job(first)["phase"] == "running"


def main():
    cases = [a_bill_adds_up_and_is_tried_with_other_prices, an_invoice_as_csv_and_as_a_journal_adds_up_to_its_total,
             what_runs_off_peak_is_discounted_by_a_line_of_its_own, what_others_measure_is_on_the_bill_once,
             a_correction_with_a_key_counts_once, a_lender_is_not_told_who_borrowed,
             every_line_opens_down_to_its_events, a_budget_that_is_used_up_stops_starts_and_kills_nothing,
             budgets_are_watched_where_a_model_has_no_price, a_grant_ends_at_its_end_and_kills_nothing]
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
    print(f"{len(cases) - failed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

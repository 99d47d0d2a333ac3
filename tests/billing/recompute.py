#!/usr/bin/env python3
"""Bills a month again from exported events alone, and writes the invoice as canonical text.

    recompute.py EVENTS.jsonl FROM_MS TO_MS MONTH > invoice.txt

It shares no code with berth and works otherwise: at each instant at which something happened it adds up every running task
and every GPU anew, by the five steps of docs/billing.md, where berth keeps sums. Off-peak windows are looked up minute by
minute in Python's own time zones, where berth computes their edges from the clock changes that are stored with the prices. Each line of EVENTS is an event as
`berth events -o json` shows it, from the first one on. FROM_MS and TO_MS bound the month, in milliseconds since 1970."""
import collections
import datetime
import json
import sys
import zoneinfo

HOUR = 3_600_000
KINDS = ["floor-used", "floor-idle", "floor-lent", "lending-credit", "burst", "premium", "discount", "cpu", "memory",
         "correction", "reported"]
UNITS = {"gpu-hour": 1000 * HOUR, "mig-hour": 1000 * HOUR, "core-hour": 1000 * HOUR, "gib-hour": 1024 * HOUR, "none": 1,
         "reported": 1}
ACCOUNTS = ["floor_used", "floor_idle", "floor_lent", "burst", "unowned", "drained", "failed", "foreign", "capacity"]


def milliseconds(text):
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = when - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class Tariffs:
    """Which prices of a book hold when."""

    def __init__(self, book):
        self.periods = [(milliseconds(one["valid_from"]), one) for one in book["periods"]]

    def at(self, ms):
        """The number of the period, or -1 before the first one, and what is off at this time, in percent."""
        number = sum(1 for begin, _ in self.periods if begin <= ms) - 1
        return number, self.off(number, ms)

    def off(self, number, ms):
        for window in self.periods[number][1].get("off_peak", []) if number >= 0 else []:
            shown = datetime.datetime.fromtimestamp(ms // 1000, zoneinfo.ZoneInfo(window["zone"]))
            minute = shown.hour * 60 + shown.minute
            before = (shown.date() - datetime.timedelta(days=1)).weekday()
            over_midnight = window["to_min"] <= window["from_min"]
            today = minute >= window["from_min"] and (over_midnight or minute < window["to_min"])
            since_yesterday = over_midnight and minute < window["to_min"]
            days = window["days"] or DAYS
            if (today and DAYS[shown.weekday()] in days) or (since_yesterday and DAYS[before] in days):
                return window["discount_percent"]
        return 0

    def edges(self, begin, end):
        """Where time is to be cut: the prices change, or a window begins or ends, all at full minutes."""
        edges = {begin, end, *(since for since, _ in self.periods if begin < since < end)}
        minutes = [begin, *range(begin - begin % 60_000 + 60_000, end, 60_000)]
        for minute, following in zip(minutes, minutes[1:]):
            if self.at(minute) != self.at(following):
                edges.add(following)
        return sorted(edges)


class Queue:
    def __init__(self, path):
        self.path = path
        self.configured, self.decay_s, self.guaranteed = {}, 0, {}

    def stated(self, model):
        return self.guaranteed.get("model_gpu_milli", {}).get(model, 0)

    def gpus(self):
        return max(sum(self.guaranteed.get("model_gpu_milli", {}).values()), self.guaranteed.get("gpu_milli") or 0)


class Job:
    def __init__(self, spec, queue):
        self.spec, self.queue, self.charges = spec, queue, []

    def tasks(self):
        for charge in self.charges:
            for task in charge[1]:
                yield charge[0], task

    def slice_of(self, task):
        return self.spec["groups"][task["group"]]["request"].get("mig_profile", "") if task.get("slices", 0) else ""


class Cluster:
    """What the events up to an instant have made."""

    def __init__(self):
        self.name, self.queues, self.nodes, self.jobs, self.running = "", {}, {}, {}, {}
        self.burst_pools, self.simulated, self.models = set(), False, set()
        self.prices, self.version = None, 0
        self.queue("")

    def queue(self, path):
        if path not in self.queues:
            if path:
                self.queue(path.rpartition("/")[0])
            self.queues[path] = Queue(path)
        return self.queues[path]

    def apply(self, event):
        handler = getattr(self, event["kind"].replace("-", "_"), None)
        if handler:
            handler(event)

    def cluster_configured(self, event):
        config = event["config"]
        self.name = config["name"]
        renamed = {}
        for queue in self.queues.values():
            for move in event.get("moves", []):
                if queue.path == move["from"] or queue.path.startswith(move["from"] + "/"):
                    queue.path = move["to"] + queue.path[len(move["from"]):]
                    break
            renamed[queue.path] = queue
        self.queues = renamed
        listed = {one["path"]: one for one in config["queues"]}
        for path, one in listed.items():
            queue = self.queue(path)
            decay = one.get("guarantee_decay_s", 0)
            if (queue.configured, queue.decay_s) != (one["guaranteed"], decay):
                queue.guaranteed = one["guaranteed"]
            queue.configured, queue.decay_s = one["guaranteed"], decay
        for path, queue in self.queues.items():
            if path not in listed:
                queue.configured, queue.guaranteed, queue.decay_s = {}, {}, 0
        self.burst_pools = {pool["name"] for pool in config["pools"] if pool.get("burst")}
        for queue in self.queues.values():
            self.models |= set(queue.guaranteed.get("model_gpu_milli", {}))

    def guarantee_changed(self, event):
        queue = self.queue(event["queue"])
        queue.guaranteed = event["to"]
        self.models |= set(queue.guaranteed.get("model_gpu_milli", {}))

    def node_registered(self, event):
        spec = event["spec"]
        node = self.nodes.setdefault(event["node"], {"gpus": [], "cordoned": False})
        node["pool"], node["status"] = spec["pool"], "ready"
        node["foreign"] = set(event.get("foreign", {}).get("gpus", []))
        for i, gpu in enumerate(spec["gpus"]):
            if i == len(node["gpus"]):
                node["gpus"].append(None)
            node["gpus"][i] = {"model": gpu["model"], "healthy": gpu["healthy"], "there": True}
            self.simulated |= bool(gpu.get("simulated"))
            self.models.add(gpu["model"])
        for gone in node["gpus"][len(spec["gpus"]):]:
            gone["there"] = False

    def node_status_changed(self, event):
        self.nodes[event["node"]]["status"] = event["status"]

    def node_cordoned(self, event):
        self.nodes[event["node"]]["cordoned"] = event["cordoned"]

    def node_removed(self, event):
        node = self.nodes[event["node"]]
        node["cordoned"], node["foreign"] = False, set()
        for gpu in node["gpus"]:
            gpu["there"] = False

    def foreign_use_changed(self, event):
        self.nodes[event["node"]]["foreign"] = set(event["use"]["gpus"])

    def gpu_health_changed(self, event):
        self.nodes[event["node"]]["gpus"][event["gpu"]]["healthy"] = event["healthy"]

    def job_submitted(self, event):
        self.jobs[event["job"]] = Job(event["spec"], self.queue(event["spec"]["queue"]))

    def attempt_started(self, event):
        job = self.jobs[event["job"]]
        job.charges = [[event["guaranteed"], list(event["placements"])]]
        self.running[event["job"]] = job

    def attempt_grown(self, event):
        self.jobs[event["job"]].charges.append([event["guaranteed"], list(event["placements"])])

    def charge_promoted(self, event):
        self.jobs[event["job"]].charges[event["charge"]][0] = event["guaranteed"]

    def attempt_shrunk(self, event):
        charges = self.jobs[event["job"]].charges
        tasks = sum(len(charge[1]) for charge in charges)
        while tasks > event["keep"]:
            while not charges[-1][1]:
                charges.pop()
            charges[-1][1].pop()
            tasks -= 1
        while not charges[-1][1]:
            charges.pop()

    def attempt_ended(self, event):
        self.jobs[event["job"]].charges = []
        del self.running[event["job"]]

    def prices_applied(self, event):
        self.prices, self.version = event["book"], event["version"]


def in_proportion(total, weights):
    everything = sum(weights)
    if total == everything:
        return list(weights)
    shares, weight, given = [], 0, 0
    for one in weights:
        weight += one
        shares.append(total * weight // everything - given)
        given += shares[-1]
    return shares


class Instant:
    """The accounts at one instant, in thousandths of GPUs, by the five steps."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.paths = sorted(cluster.queues)
        self.models = sorted(cluster.models)
        self.shares = collections.Counter()  # (lender, model, borrower queue or None, own)
        self.uses = collections.Counter()    # (job, model, slice, guaranteed): (gpu, units), and (job,): (cpu, memory)
        self.count_tasks()
        self.count_gpus()
        self.share_out()

    def count_tasks(self):
        self.within, self.borrowed, self.in_burst = (collections.Counter() for _ in range(3))  # (path, model)
        self.used = collections.Counter()  # (node, gpu)
        self.of_jobs = []
        for number, job in self.cluster.running.items():
            for guaranteed, task in job.tasks():
                node = self.cluster.nodes[task["node"]]
                piece = job.slice_of(task)
                for gpu in task["gpus"]:
                    model, milli = node["gpus"][gpu]["model"], task["gpu_milli"]
                    self.used[task["node"], gpu] += milli
                    kind = self.within if guaranteed else self.in_burst if node["pool"] in self.cluster.burst_pools else self.borrowed
                    kind[job.queue.path, model] += milli
                    self.of_jobs.append((number, model, piece, guaranteed, milli, 1000 if piece else milli, 0, 0))
                self.of_jobs.append((number, "", "", False, 0, 0, task["cpu_milli"], task["memory_mib"]))

    def count_gpus(self):
        self.fleet = {model: dict.fromkeys(ACCOUNTS, 0) for model in self.models}
        self.idle, self.idle_in_burst = collections.Counter(), collections.Counter()
        for number, node in self.cluster.nodes.items():
            for i, gpu in enumerate(node["gpus"]):
                capacity = 1000 if gpu["there"] else 0
                unused = capacity - self.used[number, i]
                row = self.fleet[gpu["model"]]
                row["capacity"] += capacity
                if not gpu["healthy"] or node["status"] != "ready":
                    row["failed"] += unused
                elif i in node["foreign"]:
                    row["foreign"] += unused
                elif node["cordoned"]:
                    row["drained"] += unused
                elif node["pool"] in self.cluster.burst_pools:
                    self.idle_in_burst[gpu["model"]] += unused
                else:
                    self.idle[gpu["model"]] += unused

    def floors(self):
        """The floor of each queue: by model, and what names no model."""
        children = collections.defaultdict(list)
        for path, queue in self.cluster.queues.items():
            if path:
                children[path.rpartition("/")[0]].append(queue)
        floors, free = {}, {}
        for path, queue in self.cluster.queues.items():
            left = max(queue.gpus() - sum(child.gpus() for child in children[path]), 0)
            for model in self.models:
                stated = max(queue.stated(model) - sum(child.stated(model) for child in children[path]), 0)
                floors[path, model] = min(left, stated)
                left -= floors[path, model]
            free[path] = left
        return floors, free

    def share_out(self):
        floors, free = self.floors()
        backed, pool_of, left = {}, {}, {}
        for model in self.models:
            pool_of[model] = self.idle[model] + sum(self.borrowed[path, model] for path in self.paths)
            unused = [max(floors[path, model] - self.within[path, model], 0) for path in self.paths]
            for path in self.paths:
                free[path] -= max(self.within[path, model] - floors[path, model], 0)
            backed[model] = in_proportion(min(pool_of[model], sum(unused)), unused)
            left[model] = pool_of[model] - sum(backed[model])
        rest = [max(free[path], 0) for path in self.paths]
        for model in self.models:
            more = in_proportion(min(left[model], sum(rest)), rest)
            backed[model] = [a + b for a, b in zip(backed[model], more)]
            rest = [a - b for a, b in zip(rest, more)]
        for model in self.models:
            self.lend(model, dict(zip(self.paths, backed[model])), pool_of[model])

    def lend(self, model, unused, pool):
        surplus = pool - sum(unused.values())
        borrowed = {path: self.borrowed[path, model] for path in self.paths}
        own = 0
        for leaf in self.paths:
            above = leaf
            while True:
                taken = min(unused[above], borrowed[leaf])
                if taken:
                    unused[above] -= taken
                    borrowed[leaf] -= taken
                    own += taken
                    self.shares[above, model, leaf, True] += taken
                if not above:
                    break
                above = above.rpartition("/")[0]
        wanted = [borrowed[path] for path in self.paths]
        burst = min(surplus, sum(wanted))
        wanted = [a - b for a, b in zip(wanted, in_proportion(burst, wanted))]
        lendable = [unused[path] for path in self.paths]
        lent = in_proportion(sum(wanted), lendable)
        for path, has, gives in zip(self.paths, lendable, lent):
            if has > gives:
                self.shares[path, model, None, False] += has - gives
        row = self.fleet[model]
        row["floor_used"] = sum(self.within[path, model] for path in self.paths)
        row["floor_lent"] = own + sum(lent)
        row["floor_idle"] = sum(lendable) - sum(lent)
        row["burst"] = burst + sum(self.in_burst[path, model] for path in self.paths)
        row["unowned"] = surplus - burst + self.idle_in_burst[model]
        lender = borrower = 0
        while lender < len(lent) and borrower < len(wanted):
            amount = min(lent[lender], wanted[borrower])
            if amount:
                self.shares[self.paths[lender], model, self.paths[borrower], False] += amount
            lent[lender] -= amount
            wanted[borrower] -= amount
            if lent[lender] == 0:
                lender += 1
            else:
                borrower += 1


class Month:
    def __init__(self, begin, end, tariffs):
        self.begin, self.end, self.tariffs = begin, end, tariffs
        self.cluster = Cluster()
        self.uses = collections.defaultdict(lambda: [0, 0, 0, 0])
        self.off_peak = collections.defaultdict(lambda: [0, 0])
        self.floors = collections.Counter()
        self.fleet = collections.defaultdict(lambda: dict.fromkeys(ACCOUNTS, 0))
        self.corrections, self.reports, self.first, self.last = [], [], 0, 0

    def count(self, events):
        edges = self.tariffs.edges(self.begin, self.end)
        now = 0
        for event in events:
            self.until(now, event["ms"], edges)
            now = event["ms"]
            self.cluster.apply(event)
            if event["kind"] == "quantity-reported" and self.begin <= milliseconds(event["from"]) < self.end:
                self.reports.append((self.cluster.queue(event["queue"]), event))
            if self.begin <= now < self.end:
                self.first = self.first or event["seq"]
                self.last = event["seq"]
                if event["kind"] == "bill-corrected":
                    self.corrections.append(event)
        self.until(now, self.end, edges)

    def until(self, now, then, edges):
        stops = [now, *(edge for edge in edges if now < edge < then), then]
        for begin, end in zip(stops, stops[1:]):
            if begin >= self.begin and end <= self.end and end > begin:
                self.flow(*self.tariffs.at(begin), end - begin)

    def flow(self, period, off, ms):
        instant = Instant(self.cluster)
        for number, model, piece, guaranteed, *amounts in instant.of_jobs:
            sums = self.uses[number, period, model, piece, guaranteed]
            for i, amount in enumerate(amounts):
                sums[i] += amount * ms
            if off:
                sums = self.off_peak[number, period, model, piece, guaranteed, off]
                for i, amount in enumerate(amounts[:2]):
                    sums[i] += amount * ms
        for (lender, model, borrower, own), milli in instant.shares.items():
            queues = self.cluster.queues
            self.floors[queues[lender], model, None if borrower is None else queues[borrower], own, period] += milli * ms
        for model, row in instant.fleet.items():
            for account, milli in row.items():
                self.fleet[model][account] += milli * ms


class Invoice:
    def __init__(self, month, book):
        self.month, self.book, self.lines = month, book, []
        self.since = [begin for begin, _ in month.tariffs.periods]
        for (number, part, model, piece, guaranteed), amounts in sorted(month.uses.items()):
            self.rate_job(number, part, model, piece, guaranteed, *amounts)
        for (number, part, model, piece, guaranteed, off), amounts in sorted(month.off_peak.items()):
            self.rate_off_peak(number, part, model, piece, guaranteed, off, *amounts)
        for (lender, model, borrower, own, part), amount in month.floors.items():
            self.rate_floor(lender, model, borrower, own, part, amount)
        for event in month.corrections:
            self.lines.append(self.line("correction", event["queue"], 0, unit="none", job=event["job"] or 0,
                                        amount=event["amount_micro"], begin=event["ms"], end=event["ms"],
                                        note=f"event {event['seq']} corrects {event['month']}: {event['reason']}"))
        for queue, event in month.reports:
            self.rate_report(queue, event)
        self.lines.sort(key=lambda line: (*self.group(line), line["borrower"], line["user"], line["job"], line["begin"]))
        self.round()
        self.total = sum(line["amount"] for line in self.lines)

    def period(self, part):
        return self.book["periods"][part] if part >= 0 else None

    def line(self, kind, queue, part, **more):
        begin = max(self.since[part], self.month.begin) if part >= 0 else self.month.begin
        end = min(self.since[part + 1], self.month.end) if part + 1 < len(self.since) else self.month.end
        line = dict(kind=kind, queue=queue, cause="", model="", slice="", borrower="", user="", job=0, name="",
                    job_class="training", labels="", unit="gpu-hour", reported_unit="", quantity=0, gpu=0, price=0, amount=0, note="",
                    begin=begin, end=end)
        line.update(more)
        return line

    @staticmethod
    def group(line):
        return (line["queue"], KINDS.index(line["kind"]), line["cause"], line["model"], line["slice"],
                list(UNITS).index(line["unit"]), line["reported_unit"], line["price"])

    @staticmethod
    def of_job(number, spec):
        return dict(user=spec["user"], job=number, name=spec["name"], job_class=spec["class"],
                    labels=",".join(f"{key}={value}" for key, value in sorted(spec["labels"].items())))

    def gpu_line(self, number, part, model, piece, guaranteed, gpu, units):
        job, period = self.month.cluster.jobs[number], self.period(part)
        line = self.line("floor-used" if guaranteed else "burst", job.queue.path, part, model=model, slice=piece,
                         quantity=gpu, gpu=gpu, **self.of_job(number, job.spec))
        price = next((one for one in period["gpus"] if one["model"] == model), None) if period else None
        if price:
            line["price"] = price["floor_micro" if guaranteed else "burst_micro"]
            if not guaranteed and piece in price["mig_micro"]:
                line.update(unit="mig-hour", quantity=units, price=price["mig_micro"][piece])
        return line

    def rate_off_peak(self, number, part, model, piece, guaranteed, off, gpu, units):
        if gpu:
            line = self.gpu_line(number, part, model, piece, guaranteed, gpu, units)
            self.lines.append({**line, "kind": "discount", "gpu": 0, "cause": "off_peak",
                               "price": line["price"] * off // 100})

    def rate_job(self, number, part, model, piece, guaranteed, gpu, units, cpu, memory):
        job, period = self.month.cluster.jobs[number], self.period(part)
        spec = job.spec
        of_job = self.of_job(number, spec)
        if gpu:
            line = self.gpu_line(number, part, model, piece, guaranteed, gpu, units)
            self.lines.append(line)
            for one in period["adjustments"] if period else []:
                if self.applies(one["cause"], spec):
                    self.lines.append({**line, "kind": "premium" if one["percent"] > 0 else "discount", "gpu": 0,
                                       "cause": one["cause"], "price": line["price"] * abs(one["percent"]) // 100})
        if not period:
            return
        for kind, unit, quantity, price in (("cpu", "core-hour", cpu, period["cpu_micro"]),
                                            ("memory", "gib-hour", memory, period["memory_micro"])):
            if quantity and price:
                self.lines.append(self.line(kind, job.queue.path, part, unit=unit, quantity=quantity, price=price, **of_job))

    def rate_report(self, queue, event):
        begin, end = milliseconds(event["from"]), milliseconds(event["to"])
        period = self.period(self.month.tariffs.at(begin)[0])
        price = next(one for one in period["quantities"] if one["kind"] == event["quantity_kind"]) if period else None
        self.lines.append(self.line("reported", queue.path, 0, cause=event["quantity_kind"], unit="reported",
                                    reported_unit=event["unit"], quantity=event["quantity"], begin=begin, end=end,
                                    price=price["price_micro"] if price else 0, note=event["id"]))

    @staticmethod
    def applies(cause, spec):
        if cause == "exclusive":
            return spec["exclusive"]
        if cause == "required_topology":
            return any(one["topology"]["required"] for one in [spec, *spec["groups"]])
        return spec["class"] == cause

    def rate_floor(self, lender, model, borrower, own, part, amount):
        period = self.period(part)
        price = next((one for one in period["gpus"] if one["model"] == model), None) if period else None
        line = self.line("floor-lent" if borrower else "floor-idle", lender.path, part, model=model, quantity=amount,
                         borrower=borrower.path if borrower else "", gpu=amount, price=price["floor_micro"] if price else 0)
        self.lines.append(line)
        if price and borrower:
            percent = 100 if own else period["lending_credit_percent"]
            credit = price["burst_micro"] * percent // 100
            if credit:
                self.lines.append({**line, "kind": "lending-credit", "gpu": 0, "price": credit})

    def round(self):
        """Half up, group by group: the first n lines of a group come to their exact sum, rounded."""
        group, exact, billed = None, 0, 0
        for line in self.lines:
            if self.group(line) != group:
                group, exact, billed = self.group(line), 0, 0
            if line["kind"] == "correction":
                continue
            per = UNITS[line["unit"]]
            exact += line["quantity"] * line["price"]
            until = (2 * exact + per) // (2 * per)
            line["amount"] = (until - billed) * (-1 if line["kind"] in ("lending-credit", "discount") else 1)
            billed = until

    def text(self, name, version):
        month, cluster = self.month, self.month.cluster
        rows = [["invoice", name, month.begin, month.end, cluster.name, "", self.book["currency"], version, month.first,
                 month.last, "simulated" if cluster.simulated else "", self.total]]
        for one in self.lines:
            one = {**one, "unit": one["reported_unit"] if one["unit"] == "reported" else one["unit"]}
            rows.append(["line", *(one[key] for key in ("queue", "kind", "cause", "model", "slice", "borrower", "user")),
                         one["job"] or "", *(one[key] for key in ("name", "job_class", "labels", "begin", "end", "unit",
                                                                  "quantity", "gpu", "price", "amount", "note"))])
        for model, row in sorted(month.fleet.items()):
            if row["capacity"]:
                rows.append(["fleet", model, *(row[account] for account in ACCOUNTS if account != "foreign"),
                             *([row["foreign"]] if row["foreign"] else [])])
        return "".join("\t".join(str(field).replace("\t", " ").replace("\n", " ") for field in row) + "\n" for row in rows)


def recompute(lines, begin, end, name):
    events = [json.loads(line) for line in lines]
    for event in events:
        event["ms"] = milliseconds(event["time"])
    applied = [event for event in events if event["kind"] == "prices-applied"][-1]
    month = Month(begin, end, Tariffs(applied["book"]))
    month.count(events)
    return Invoice(month, applied["book"]).text(name, applied["version"])


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as exported:
        sys.stdout.write(recompute(exported, int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))

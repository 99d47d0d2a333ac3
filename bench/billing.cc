// What a month costs to bill: 50,000 GPUs of three models, 300 teams with floors in 30 organisations, prices that
// change in the middle, and 900,000 jobs, as a stream of events that is made while it is read. The stream keeps its own
// sums, by code that shares nothing with the ledger, and the invoice is compared with them to the micro-unit. Prints
// one JSON object. An argument: the number of jobs (default: 900,000); they last longer where they are fewer.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "billing/ledger.h"
#include "billing/meter.h"
#include "billing/opened_line.h"
#include "billing/rate.h"
#include "store/event_codec.h"

namespace {

using namespace berth;
using billing::Invoice;
using billing::InvoiceLine;
using billing::Ledger;
using billing::LineKind;

constexpr std::uint32_t kNodes = 6250;
constexpr std::size_t kGpusPerNode = 8;
constexpr std::int64_t kFleet = std::int64_t{kNodes} * kGpusPerNode;
constexpr int kOrgs = 30;
constexpr int kTeamsPerOrg = 10;
constexpr std::int64_t kFloorOfTeam = 133;  // GPUs: four fifths of the fleet are floors
constexpr std::size_t kBatch = 20'000;      // events
const Month kMonth = *month_of("2026-11");
const Timestamp kNewPrices{kMonth.begin.ms + std::int64_t{14} * 24 * billing::kHourMs};

const std::vector<std::string>& models() {
  static const std::vector<std::string> names{"A100", "H100", "H200"};
  return names;
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double resident_mib() {
  std::ifstream status("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  status >> size >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

PriceBook prices() {
  PriceBook book{"EUR", {}};
  for (const std::int64_t later : {0, 1}) {
    PricePeriod& period = book.periods.emplace_back();
    period.valid_from = later == 0 ? kMonth.begin : kNewPrices;
    for (std::size_t m = 0; m < models().size(); ++m) {
      const auto rank = static_cast<std::int64_t>(m);
      period.gpus.push_back({models()[m], 1'333'300 + 700'100 * rank - 100 * later, 2'111'100 + 900'700 * rank, {}});
    }
    period.lending_credit_percent = 60;
    period.cpu_micro = 20'100;
    period.memory_micro = 3'000;
  }
  return book;
}

std::string team_path(int team) { return fmt::format("org-{:02}/team-{}", team / kTeamsPerOrg, team % kTeamsPerOrg); }

// Sums of the stream's own: by team, model, within or not, and prices.
struct UseKey {
  int team = 0;
  std::size_t model = 0;
  bool within = false;
  bool later = false;
  auto operator<=>(const UseKey&) const = default;
};

class Stream {
 public:
  explicit Stream(std::int64_t jobs) : jobs_(jobs) {
    for (std::uint32_t n = 0; n < kNodes; ++n) free_[model_of(n)].push_back(n);
  }

  // Fills `events` with the next ones; nothing is left when it stays empty.
  void next(std::vector<EventRecord>& events) {
    events.clear();
    if (seq_ == 0) begin(events);
    while (events.size() < kBatch && (submitted_ < jobs_ || !ends_.empty())) {
      const Timestamp submit{kMonth.begin.ms + 1000 + submitted_ * (kMonth.end.ms - kMonth.begin.ms - 2000) / jobs_};
      if (submitted_ == jobs_ || (!ends_.empty() && ends_.top().first <= submit))
        end(events);
      else
        start(events, submit);
    }
  }

  std::int64_t refused() const { return refused_; }
  const std::map<UseKey, std::int64_t>& used() const { return used_; }

 private:
  struct Running {
    int team = 0;
    std::uint32_t node = 0;
    bool within = false;
    std::uint8_t gpus = 0;
    Timestamp since;
  };
  static std::size_t model_of(std::uint32_t node) { return node % models().size(); }

  void add(std::vector<EventRecord>& events, Timestamp time, Event event) {
    events.push_back({++seq_, time, std::move(event)});
  }

  void begin(std::vector<EventRecord>& events) {
    ClusterConfigured configured;
    configured.config.name = "bench";
    const auto queue = [&](const std::string& path, std::int64_t floor) {
      QueueConfig one;
      one.path = path;
      one.guaranteed.gpu_milli = floor * kMilli;
      configured.config.queues.push_back(std::move(one));
    };
    for (int org = 0; org < kOrgs; ++org) {
      queue(fmt::format("org-{:02}", org), kFloorOfTeam * kTeamsPerOrg);
      for (int team = org * kTeamsPerOrg; team < (org + 1) * kTeamsPerOrg; ++team) queue(team_path(team), kFloorOfTeam);
    }
    const Timestamp before{kMonth.begin.ms - 1000};
    add(events, before, std::move(configured));
    for (std::uint32_t n = 0; n < kNodes; ++n) {
      NodeRegistered node;
      node.node = NodeId(n);
      node.spec.name = fmt::format("n{}", n);
      node.spec.gpus.resize(kGpusPerNode);
      for (Gpu& gpu : node.spec.gpus) gpu.model = models()[model_of(n)];
      add(events, before, std::move(node));
    }
  }

  void start(std::vector<EventRecord>& events, Timestamp now) {
    const std::int64_t id = ++submitted_;
    const int team = static_cast<int>(random_.below(kOrgs * kTeamsPerOrg));
    JobSubmitted submitted;
    submitted.job = JobId(static_cast<std::uint64_t>(id));
    submitted.spec.queue = team_path(team);
    submitted.spec.user = fmt::format("user-{}", random_.below(20));
    submitted.spec.name = "train";
    submitted.spec.groups.emplace_back();
    add(events, now, std::move(submitted));
    std::vector<std::uint32_t>& free = free_[random_.below(models().size())];
    if (free.empty()) {  // a full fleet: the job is cancelled at once
      ++refused_;
      add(events, now, JobFinished{JobId(static_cast<std::uint64_t>(id)), Outcome::kCancelled, 0, ""});
      return;
    }
    const std::uint32_t node = free.back();
    free.pop_back();
    Running running{team, node, false, static_cast<std::uint8_t>(random_.between(6, 8)), now};
    running.within = use_within_[team] + running.gpus <= kFloorOfTeam;
    if (running.within) use_within_[team] += running.gpus;
    AttemptStarted started;
    started.job = JobId(static_cast<std::uint64_t>(id));
    started.attempt = 1;
    started.guaranteed = running.within;
    TaskPlacement& task = started.placements.emplace_back();
    task.node = NodeId(node);
    for (std::uint8_t g = 0; g < running.gpus; ++g) task.gpus.push_back(g);
    task.cpu_milli = 16'000;
    task.memory_mib = 131'072;
    add(events, now, std::move(started));
    // About nine tenths of the nodes are in use.
    const std::int64_t mean = (kMonth.end.ms - kMonth.begin.ms) / jobs_ * kNodes * 9 / 10;
    const Timestamp until{std::min(now.ms + random_.between(mean / 5, mean * 9 / 5), kMonth.end.ms - 1)};
    ends_.emplace(until, id);
    running_.emplace(id, running);
  }

  void end(std::vector<EventRecord>& events) {
    const auto [now, id] = ends_.top();
    ends_.pop();
    const JobId job(static_cast<std::uint64_t>(id));
    add(events, now, AttemptEnded{job, 1, Outcome::kSucceeded, 0, ""});
    add(events, now, JobFinished{job, Outcome::kSucceeded, 0, ""});
    const auto running = running_.find(id);
    const Running& was = running->second;
    free_[model_of(was.node)].push_back(was.node);
    if (was.within) use_within_[was.team] -= was.gpus;
    for (const bool later : {false, true}) {
      const Timestamp from = later ? std::max(was.since, kNewPrices) : was.since;
      const Timestamp to = later ? now : std::min(now, kNewPrices);
      if (to > from) used_[{was.team, model_of(was.node), was.within, later}] += was.gpus * kMilli * (to - from);
    }
    running_.erase(running);
  }

  using End = std::pair<Timestamp, std::int64_t>;
  const std::int64_t jobs_;
  Random random_{20261101};
  Seq seq_ = 0;
  std::int64_t submitted_ = 0;
  std::int64_t refused_ = 0;
  std::map<std::size_t, std::vector<std::uint32_t>> free_;  // nodes, by model
  std::map<int, std::int64_t> use_within_;                  // GPUs, by team
  std::map<std::int64_t, Running> running_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::map<UseKey, std::int64_t> used_;
};

std::int64_t distance(std::int64_t a, std::int64_t b) { return a > b ? a - b : b - a; }

// What the lines of jobs on GPUs should come to, team by team and price by price, less what they come to; and what the
// floors and the accounts of the fleet have too much or too little.
std::int64_t micro_units_off(const Invoice& invoice, const Stream& stream) {
  const PriceBook book = prices();
  std::map<std::tuple<std::string, std::string, bool, std::int64_t>, std::int64_t> expected;  // quantity, by price
  for (const auto& [key, quantity] : stream.used()) {
    const GpuPrice& price = *book.periods[key.later ? 1 : 0].gpu(models()[key.model]);
    expected[{team_path(key.team), models()[key.model], key.within,
              key.within ? price.floor_micro : price.burst_micro}] += quantity;
  }
  std::map<std::tuple<std::string, std::string, bool, std::int64_t>, std::int64_t> billed;
  std::map<std::string, std::int64_t> held;
  std::int64_t total = 0;
  for (const InvoiceLine& line : invoice.lines) {
    total += line.amount_micro;
    const bool within = line.kind == LineKind::kFloorUsed;
    if (within || line.kind == LineKind::kBurst)
      billed[{line.queue, line.model, within, line.unit_price_micro}] += line.amount_micro;
    if (within || line.kind == LineKind::kFloorIdle || line.kind == LineKind::kFloorLent)
      held[line.queue] += line.gpu_milli_ms;
  }
  std::int64_t off = distance(total, invoice.total_micro);
  const Int128 hour = billing::per_hour(billing::Unit::kGpuHour);
  for (const auto& [key, quantity] : expected) {
    const auto amount = static_cast<std::int64_t>((2 * Int128{quantity} * std::get<3>(key) + hour) / (2 * hour));
    off += distance(amount, billed[key]);
  }
  off += distance(static_cast<std::int64_t>(billed.size()), static_cast<std::int64_t>(expected.size()));
  for (int team = 0; team < kOrgs * kTeamsPerOrg; ++team)
    off += distance(held[team_path(team)], kFloorOfTeam * kMilli * (kMonth.end - kMonth.begin));
  std::int64_t capacity = 0;
  for (const billing::FleetAccounts& one : invoice.fleet) {
    capacity += one.capacity;
    off += distance(one.capacity, one.floor_used + one.floor_idle + one.floor_lent + one.burst + one.unowned +
                                      one.drained + one.failed);
  }
  return off + distance(capacity, kFleet * kMilli * (kMonth.end - kMonth.begin));
}

// A ledger of one instant in the middle of the month, as the server keeps them, and the encoded events that follow: as
// many as are read on for one answer (daemon/billing_desk.h), from a mark that is as far away as it may be.
struct ReadOn {
  std::optional<Ledger> mark;
  std::vector<store::Record> events;
};
constexpr std::size_t kReadOn = 60'000;

void keep_middle(ReadOn& kept, const Ledger& ledger, const std::vector<EventRecord>& events) {
  if (events.front().time < kNewPrices || kept.events.size() >= kReadOn) return;
  if (!kept.mark) kept.mark.emplace(ledger.resumed());
  for (const EventRecord& event : events) kept.events.push_back(store::to_record(event, 1));
}

std::vector<billing::BilledStretch> read_on(const ReadOn& kept, const billing::FoundLine& found, const Ledger& ledger) {
  Ledger follower = kept.mark->resumed();
  follower.follow(billing::followed_by(found.line, ledger));
  for (const store::Record& record : kept.events) follower.apply(store::to_event(record).value());
  follower.end_stretch();
  return billing::bill_stretches(found, 0, follower.stretches());
}

// Counts the use of a job again from its own three events (submitted, started, ended) and those of its node.
std::int64_t count_again(const billing::FoundLine& found, const Ledger& ledger, const std::vector<store::Record>& own) {
  Ledger follower(ledger.window());
  follower.follow(billing::followed_by(found.line, ledger));
  for (const store::Record& record : own) follower.apply(store::to_event(record).value());
  follower.end_stretch();
  std::int64_t sum = 0;
  for (const billing::BilledStretch& one : billing::bill_stretches(found, 0, follower.stretches()))
    sum += one.amount_micro;
  return sum;
}

billing::FoundLine find(const Ledger& ledger, const InvoiceLine& line) {
  const auto beside = billing::make_invoice(ledger, {"", kMonth, prices(), 1, line.job});
  return billing::find_line(beside.value(), billing::line_id(line)).value();
}

// The events of the jobs whose lines are opened; each is on one node.
using EventsOfJobs = std::map<JobId, std::vector<store::Record>>;

void keep_sampled(EventsOfJobs& kept, std::map<std::uint32_t, store::Record>& nodes,
                  const std::vector<EventRecord>& events) {
  constexpr std::uint64_t kEvery = 45'007;
  for (const EventRecord& event : events) {
    if (const auto* node = std::get_if<NodeRegistered>(&event.event))
      nodes.emplace(node->node.value(), store::to_record(event, 1));
    const JobId job = job_of(event.event);
    if (!job.valid() || job.value() % kEvery != 1) continue;
    std::vector<store::Record>& own = kept[job];
    if (const auto* started = std::get_if<AttemptStarted>(&event.event))
      own.insert(own.begin(), nodes.at(started->placements.front().node.value()));
    own.push_back(store::to_record(event, 1));
  }
}

// Opens lines of jobs and of floors: finds each with what it is rounded on, and makes its stretches. Returns the
// seconds of the slowest; adds to `off` what lines of jobs do not add up to.
double line_to_events_s(const Ledger& ledger, const Invoice& invoice, const EventsOfJobs& jobs, const ReadOn& middle,
                        std::int64_t& off) {
  double slowest = 0;
  int floors = 0;
  for (const InvoiceLine& line : invoice.lines) {
    const auto own = jobs.find(line.job);
    const bool of_floor = !line.job.valid() && line.from == kNewPrices && line.kind == LineKind::kFloorLent;
    if (of_floor ? floors >= 5 : own == jobs.end()) continue;
    const double begin = now_s();
    const billing::FoundLine found = find(ledger, line);
    if (of_floor) {
      ++floors;
      if (middle.mark) BERTH_CHECK(read_on(middle, found, ledger).size() <= middle.events.size());
    } else {
      const std::int64_t sum = count_again(found, ledger, own->second);
      off += sum > line.amount_micro ? sum - line.amount_micro : line.amount_micro - sum;
    }
    slowest = std::max(slowest, now_s() - begin);
  }
  return slowest;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t jobs = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 900'000;
  if (jobs < 100 || jobs > 5'000'000) {
    std::fprintf(stderr, "usage: bench_billing [JOBS], from 100 to 5000000\n");
    return 2;
  }
  const double before_mib = resident_mib();
  Stream stream(jobs);
  billing::Meter meter;
  Ledger ledger(billing::window_of(kMonth, prices()));
  std::vector<EventRecord> events;
  double meter_s = 0;
  double ledger_s = 0;
  std::int64_t count = 0;
  ReadOn middle;
  EventsOfJobs of_jobs;
  std::map<std::uint32_t, store::Record> nodes;
  for (stream.next(events); !events.empty(); stream.next(events)) {
    keep_middle(middle, ledger, events);
    keep_sampled(of_jobs, nodes, events);
    const double begin = now_s();
    for (const EventRecord& event : events) meter.apply(event);
    const double between = now_s();
    for (const EventRecord& event : events) ledger.apply(event);
    ledger_s += now_s() - between;
    meter_s += between - begin;
    count += static_cast<std::int64_t>(events.size());
  }
  ledger.advance(kMonth.end);
  BERTH_CHECK(!ledger.check());
  const double begin = now_s();
  const auto invoice = billing::make_invoice(ledger, {"", kMonth, prices(), 1});
  const double rate_s = now_s() - begin;
  BERTH_CHECK(invoice.has_value());
  const double memory = resident_mib() - before_mib;
  fmt::print("{{\n  \"jobs\": {},\n  \"jobs_refused\": {},\n  \"events\": {},\n  \"lines\": {},\n", jobs,
             stream.refused(), count, invoice->lines.size());
  fmt::print("  \"meter_s\": {:.2f},\n  \"ledger_s\": {:.2f},\n  \"invoice_s\": {:.2f},\n", meter_s, ledger_s, rate_s);
  fmt::print("  \"events_per_s\": {:.0f},\n", static_cast<double>(count) / (meter_s + ledger_s + rate_s));
  fmt::print("  \"month_900k_jobs_s\": {:.1f},\n", ledger_s + rate_s);
  std::int64_t off = 0;
  fmt::print("  \"line_to_events_s\": {:.3f},\n", line_to_events_s(ledger, *invoice, of_jobs, middle, off));
  fmt::print("  \"micro_units_off\": {},\n", micro_units_off(*invoice, stream) + off);
  fmt::print("  \"memory_mib\": {:.0f}\n}}\n", memory);
  return 0;
}

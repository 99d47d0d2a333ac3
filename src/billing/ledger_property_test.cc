// Random lives of a cluster: the accounts add up to capacity times time after every event, agree with the meter, and do
// not depend on where time is split.

#include <map>

#include "base/random.h"
#include "billing/ledger_story.h"
#include "billing/rate.h"

namespace berth::billing {
namespace {

constexpr std::int64_t kEndMs = 40 * kHourMs;
constexpr std::array kPaths{"a", "b", "b/c", "b/d", "e"};
constexpr std::array kLeaves{"a", "b/c", "b/d", "e"};

class RandomLife {
 public:
  explicit RandomLife(std::uint64_t seed) : random_(seed) { configure(); }

  void step() {
    now_ += random_.chance(300) ? 0 : random_.between(1, kHourMs / 4);
    switch (random_.below(14)) {
      case 0:
        return configure();
      case 1:
      case 2:
        return register_node();
      case 3:
        return change_node();
      case 4:
      case 5:
        return story_.submit(now_, ++last_, kLeaves.at(random_.below(kLeaves.size())),
                             random_.chance(500) ? "ann" : "bob");
      case 6:
        return promote();
      case 7:
      case 8:
        return end();
      default:
        return start();
    }
  }

  LedgerStory& story() { return story_; }
  std::int64_t now() const { return now_; }

 private:
  void configure() {
    ClusterConfigured event;
    for (const char* path : kPaths) {
      QueueConfig queue;
      queue.path = path;
      if (random_.chance(600)) queue.guaranteed.gpu_milli = random_.between(0, 6) * 500;
      if (random_.chance(300)) queue.guaranteed.model_gpu_milli = {{"H100", random_.between(0, 3) * 1000}};
      event.config.queues.push_back(queue);
    }
    if (random_.chance(200)) event.config.pools.push_back({.name = "spare", .burst = true});
    story_.at(now_, event);
  }
  void register_node() {
    const auto id = static_cast<std::uint32_t>(random_.below(std::min<std::size_t>(nodes_.size() + 1, 5)));
    if (id == nodes_.size()) nodes_.emplace_back();
    NodeRegistered event;
    event.node = NodeId(id);
    event.spec.pool = random_.chance(300) ? "spare" : "default";
    event.spec.gpus.resize(std::max<std::size_t>(nodes_[id].size(), random_.below(4) + 1));
    for (Gpu& gpu : event.spec.gpus) {
      gpu.model = random_.chance(500) ? "H100" : "A100";
      gpu.healthy = random_.chance(900);
    }
    nodes_[id].resize(event.spec.gpus.size());
    story_.at(now_, event);
  }
  void change_node() {
    if (nodes_.empty()) return;
    const NodeId id(static_cast<std::uint32_t>(random_.below(nodes_.size())));
    if (random_.chance(400)) return story_.at(now_, NodeCordoned{id, random_.chance(500), false, "op", "", {}});
    if (random_.chance(500))
      return story_.at(now_, NodeStatusChanged{id, static_cast<NodeStatus>(random_.below(3)), "", false});
    if (random_.chance(400)) {
      ForeignUseChanged event{id, {}};
      for (std::uint8_t g = 0; g < nodes_[id.index()].size(); ++g) {
        if (random_.chance(300)) event.use.gpus.push_back(g);
      }
      return story_.at(now_, event);
    }
    const auto gpu = static_cast<std::uint8_t>(random_.below(nodes_[id.index()].size()));
    story_.at(now_, GpuHealthChanged{id, gpu, random_.chance(500), ""});
  }
  // Binds shares of free GPUs, of any job that is there.
  void start() {
    if (last_ == 0 || nodes_.empty()) return;
    const std::uint64_t id = random_.below(last_) + 1;
    const auto node = static_cast<std::uint32_t>(random_.below(nodes_.size()));
    std::vector<std::uint8_t> gpus;
    const std::int32_t milli = random_.chance(700) ? 1000 : 250;
    for (std::size_t g = 0; g < nodes_[node].size(); ++g) {
      if (nodes_[node][g] + milli <= 1000 && random_.chance(600)) gpus.push_back(static_cast<std::uint8_t>(g));
    }
    if (gpus.empty()) return;
    TaskPlacement task;
    task.node = NodeId(node);
    task.gpu_milli = milli;
    task.gpus = gpus;
    task.cpu_milli = random_.between(0, 4000);
    for (const std::uint8_t g : gpus) nodes_[node][g] += milli;
    auto& charges = running_[id];
    charges.push_back(task);
    const bool guaranteed = random_.chance(500);
    if (charges.size() == 1) return story_.at(now_, AttemptStarted{JobId(id), 1, {task}, 0, 0, guaranteed});
    story_.at(now_, AttemptGrown{JobId(id), 1, {task}, 0, guaranteed});
  }
  void promote() {
    if (running_.empty()) return;
    const auto& [id, charges] =
        *std::next(running_.begin(), static_cast<std::ptrdiff_t>(random_.below(running_.size())));
    const auto charge = static_cast<std::uint32_t>(random_.below(charges.size()));
    story_.at(now_, ChargePromoted{JobId(id), 1, charge, 0, random_.chance(500)});
  }
  void end() {
    if (running_.empty()) return;
    const auto job = std::next(running_.begin(), static_cast<std::ptrdiff_t>(random_.below(running_.size())));
    for (const TaskPlacement& task : job->second) {
      for (const std::uint8_t g : task.gpus) nodes_[task.node.index()][g] -= task.gpu_milli;
    }
    story_.end(now_, job->first);
    running_.erase(job);
  }

  Random random_;
  LedgerStory story_{kEndMs};
  std::int64_t now_ = 0;
  std::uint64_t last_ = 0;
  std::vector<std::vector<std::int32_t>> nodes_;  // what is used of each GPU
  std::map<std::uint64_t, std::vector<TaskPlacement>> running_;
};

// The accounts of the ledger and those of the meter are two folds over the same events.
void check_against_meter(const Ledger& ledger, const Meter& meter, Timestamp now) {
  const Usage usage = meter.usage(Timestamp{0}, now);
  std::map<std::string, FleetAccounts> fleet;
  for (const FleetAccounts& one : ledger.fleet()) fleet[one.model] = one;
  for (const FleetRow& row : usage.fleet) {
    const FleetAccounts& one = fleet[row.gpu_model];
    CHECK_EQ(one.capacity, row.capacity);
    CHECK_EQ(one.floor_used, row.used_guaranteed);
    CHECK_EQ(one.floor_lent + one.burst, row.used_borrowed);
    CHECK_EQ(one.failed, row.down);
    CHECK_EQ(one.floor_idle + one.unowned + one.drained, row.idle);
  }
  std::map<Account, std::int64_t> held;
  for (const JobUse& use : ledger.jobs()) {
    const BilledJob& job = ledger.job(use.job);
    if (use.gpu_milli_ms != 0) held[{job.queue, job.user, ledger.name(use.model), !use.guaranteed}] += use.gpu_milli_ms;
  }
  for (const UsageRow& row : usage.rows) {
    if (row.gpu_milli_ms != 0) CHECK_EQ(held[row.account], row.gpu_milli_ms);
  }
}

std::map<std::string, std::int64_t> floor_totals(const Ledger& ledger) {
  std::map<std::string, std::int64_t> totals;
  for (const FloorUse& use : ledger.floors())
    totals[use.queue + " " + use.model + " " + use.borrower + (use.own ? " own" : "")] += use.gpu_milli_ms;
  return totals;
}

PriceBook two_prices() {
  PriceBook book{"EUR", {}};
  for (const std::int64_t day : {0, 1}) {
    PricePeriod& period = book.periods.emplace_back();
    period.valid_from = {day * 24 * kHourMs};
    period.gpus = {{"A100", 1'111'100 + day, 1'700'000, {}}, {"H100", 2'333'300, 3'777'700 + 100 * day, {}}};
    period.lending_credit_percent = 60;
    period.cpu_micro = 12'300;
    period.adjustments = {{AdjustmentCause::kTraining, -7}};
    period.off_peak = {{{}, 20 * 60 + 7, 6 * 60, "X/Y", 30 + day},
                       {{Weekday::kThursday, Weekday::kSaturday}, 6 * 60, 9 * 60 + 30, "UTC", 11}};
  }
  // The hour from 20:30 on is there twice in the first evening, and the one from 05:00 on not at all in the next
  // morning.
  book.zones = {{"UTC", {{Timestamp{0}, 0}}},
                {"X/Y", {{Timestamp{0}, 3600}, {Timestamp{41 * kHourMs / 2}, 0}, {Timestamp{29 * kHourMs}, 3600}}}};
  return book;
}

// What jobs used at off-peak times, by looking at each minute.
std::int64_t off_peak_gpu_milli_ms(const std::vector<EventRecord>& events, const PriceBook& book, Timestamp now) {
  std::vector<Timestamp> cuts;
  constexpr std::int64_t kMinute = 60'000;
  for (std::int64_t at = kMinute; at < kEndMs; at += kMinute) cuts.push_back({at});
  Ledger minutes({Timestamp{0}, Timestamp{kEndMs}, cuts});
  for (const EventRecord& event : events) minutes.apply(event);
  minutes.advance(now);
  std::int64_t sum = 0;
  for (const JobUse& use : minutes.jobs()) {
    const Timestamp at{use.part * kMinute};
    const PricePeriod* period = book.at(at);
    if (period != nullptr && book.off_peak_at(*period, at) != nullptr) sum += use.gpu_milli_ms;
  }
  return sum;
}

}  // namespace

TEST_CASE("the accounts are capacity times time after every event, and agree with the meter") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    RandomLife life(seed);
    for (int i = 0; i < 250 && life.now() < kEndMs - kHourMs; ++i) life.step();
    life.story().ledger.advance(Timestamp{life.now()});
    CHECK_EQ(life.story().ledger.check().value_or(""), "");
    check_against_meter(life.story().ledger, life.story().meter, Timestamp{life.now()});
  }
}

TEST_CASE("splitting time changes no sum, and the lines of an invoice add up to it by every sum") {
  for (std::uint64_t seed = 100; seed <= 115; ++seed) {
    CAPTURE(seed);
    RandomLife life(seed);
    for (int i = 0; i < 250 && life.now() < kEndMs - kHourMs; ++i) life.step();
    const Timestamp now{life.now()};
    Random random(seed);
    std::vector<Timestamp> cuts;
    for (std::int64_t at = 1; at < kEndMs; at += random.between(1, 3 * kHourMs)) cuts.push_back({at});
    Ledger split({Timestamp{0}, Timestamp{kEndMs}, cuts});
    for (const EventRecord& event : life.story().events) {
      split.advance(Timestamp{event.time.ms - (event.time.ms % 7)});  // and by asking in between
      split.apply(event);
    }
    split.advance(now);
    life.story().ledger.advance(now);
    CHECK(floor_totals(split) == floor_totals(life.story().ledger));
    check_against_meter(split, life.story().meter, now);

    const Month month{"1970-01", Timestamp{0}, Timestamp{kEndMs}};
    Ledger priced(window_of(month, two_prices()));
    for (const EventRecord& event : life.story().events) priced.apply(event);
    priced.advance(now);
    const auto whole = make_invoice(priced, {"", month, two_prices(), 1});
    REQUIRE(whole.has_value());
    std::int64_t parts = 0;
    for (const char* top : {"a", "b", "e"}) parts += make_invoice(priced, {top, month, two_prices(), 1})->total_micro;
    CHECK_EQ(parts, whole->total_micro);
    for (const BillBy by : {BillBy::kQueue, BillBy::kUser, BillBy::kJob, BillBy::kModel, BillBy::kKind}) {
      std::int64_t sum = 0;
      for (const BillRow& row : bill_rows(*whole, by, "")) sum += row.amount_micro;
      CHECK_EQ(sum, whole->total_micro);
    }
    std::int64_t held = 0;
    std::int64_t lent = 0;
    for (const InvoiceLine& line : whole->lines) {
      held += line.gpu_milli_ms;
      if (line.kind == LineKind::kFloorLent) lent += line.gpu_milli_ms;  // its borrower has it in a line, too
    }
    std::int64_t off_peak = 0;
    for (const InvoiceLine& line : whole->lines) off_peak += line.cause == kOffPeak ? line.quantity : 0;
    if (seed < 104) CHECK_EQ(off_peak, off_peak_gpu_milli_ms(life.story().events, two_prices(), now));
    std::int64_t accounts = 0;
    for (const FleetAccounts& one : whole->fleet)
      accounts += one.floor_used + one.floor_idle + one.floor_lent + one.burst;
    CHECK_EQ(held - lent, accounts);
  }
}

}  // namespace berth::billing

#include "daemon/billing_desk.h"

#include <doctest/doctest.h>

#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "billing/ledger_story.h"
#include "billing/meter.h"
#include "daemon/budget_watch.h"
#include "daemon/price_check.h"
#include "model/event.h"
#include "store/event_codec.h"
#include "store/memory_log.h"

namespace berth::daemon {
namespace {

const Month kBilled = *month_of("2026-11");
constexpr std::int64_t kDayOfBill = 86'400'000;

PriceBook odd_prices() {
  PriceBook book{"EUR", {}};
  for (const std::int64_t day : {0, 11}) {
    PricePeriod& period = book.periods.emplace_back();
    period.valid_from = Timestamp{kBilled.begin.ms + day * kDayOfBill};
    period.gpus = {{"A100", 1'234'500 + day * 100, 2'222'300, {}}, {"H100", 2'345'600, 3'111'700 - day * 100, {}}};
    period.cpu_micro = 20'100;
    period.memory_micro = 3'700;
    period.lending_credit_percent = 60;
    period.adjustments = {{AdjustmentCause::kTraining, 7}, {AdjustmentCause::kExclusive, -3}};
    period.off_peak = {{{}, 20 * 60 + 7, 8 * 60, "X/Y", 30 + day},
                       {{Weekday::kSaturday, Weekday::kSunday}, 8 * 60, 20 * 60, "X/Y", 50}};
  }
  book.zones = {{"X/Y", {{Timestamp{0}, 3600}}}};
  return book;
}

// A log of jobs that start, end and are promoted, of nodes that come and go, and of floors that change.
class RandomMonth {
 public:
  explicit RandomMonth(std::uint64_t seed, Timestamp until = Timestamp{kBilled.end.ms + kDayOfBill})
      : random_(seed), story_(kBilled.end.ms) {
    const std::int64_t before = kBilled.begin.ms - 5 * kDayOfBill;
    story_.configure(before, {{"a", 4}, {"b", 3}, {"b/x", 2}, {"c", 0}});
    story_.add_node(before, 0, 8);
    story_.add_node(before, 1, 6, "A100");
    std::int64_t now = before;
    for (int i = 0; i < 300; ++i) {
      now += random_.between(0, 2 * 35 * kDayOfBill / 300);
      if (now >= until.ms) break;
      step(now);
    }
    std::vector<store::Record> records;
    for (const EventRecord& event : story_.events) records.push_back(store::to_record(event, epoch_));
    REQUIRE(log_.append(epoch_, 1, records).has_value());
  }

  const store::Log& log() const { return log_; }

 private:
  struct Live {
    std::string queue;
    std::int64_t gpus = 0;
    bool within = false;
    std::uint32_t node = 0;
    std::uint8_t first = 0;
  };

  void step(std::int64_t now) {
    const std::uint64_t what = random_.below(20);
    if (what == 0) {
      story_.configure(now, {{"a", random_.between(1, 6)}, {"b", 3}, {"b/x", random_.between(0, 3)}, {"c", 0}});
    } else if (what == 1) {
      story_.at(now, NodeCordoned{NodeId(1), random_.below(2) == 0, false, "op", "", {}});
    } else if (what == 2) {
      story_.at(now, BillCorrected{"a", "2026-10", JobId(1), -7, "a node was lost", "op"});
    } else if (what < 11) {
      start(now);
    } else if (!live_.empty()) {
      const auto one = std::next(live_.begin(), static_cast<std::ptrdiff_t>(random_.below(live_.size())));
      story_.end(now, one->first);
      story_.at(now, JobFinished{JobId(one->first), Outcome::kSucceeded, 0, ""});
      free_[one->second.node] -= 1;
      live_.erase(one);
    }
  }

  void start(std::int64_t now) {
    const std::uint32_t node = static_cast<std::uint32_t>(random_.below(2));
    if (free_[node] > 0) return;
    static const std::vector<std::string> leaves{"a", "b/x", "c"};
    Live one{leaves[random_.below(leaves.size())], random_.between(1, 6), false, node, 0};
    one.within = one.queue != "c" && one.gpus <= 2 && random_.below(2) == 0;
    const std::uint64_t id = ++jobs_;
    story_.submit(now, id, one.queue);
    std::vector<std::uint8_t> gpus;
    for (std::uint8_t gpu = 0; gpu < one.gpus; ++gpu) gpus.push_back(gpu);
    story_.start(now, id, node, gpus, one.within);
    free_[node] += 1;
    live_.emplace(id, one);
  }

  Random random_;
  billing::LedgerStory story_;
  store::MemoryLog log_;
  std::uint64_t epoch_ = log_.take_epoch().value();
  std::uint64_t jobs_ = 0;
  std::map<std::uint64_t, Live> live_;
  std::map<std::uint32_t, int> free_;  // jobs on the node: at most one
};

// Opens the line to its end, and returns what its stretches come to.
std::int64_t opened_amount(BillingDesk& desk, const billing::InvoiceLine& line, const BillingFacts& facts) {
  std::int64_t sum = 0;
  std::int64_t quantity = 0;
  Timestamp until = line.from;
  std::string after;
  do {
    const auto opened = desk.open({"2026-11", billing::line_id(line), after}, facts);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    for (const billing::BilledStretch& one : opened->stretches) {
      CHECK(one.stretch.from >= until);
      CHECK(one.stretch.to > one.stretch.from);
      until = one.stretch.to;
      sum += one.amount_micro;
      quantity += one.quantity;
    }
    after = opened->next;
  } while (!after.empty());
  CHECK(until <= line.to);
  CHECK_EQ(quantity, line.quantity);
  return sum;
}

void check_all_lines(BillingDesk& desk, const BillingFacts& facts) {
  const auto bill = desk.bill({"", "2026-11"}, facts);
  REQUIRE_MESSAGE(bill.has_value(), bill.error().message);
  CHECK(bill->lines.size() > 20);
  for (const billing::InvoiceLine& line : bill->lines) {
    if (line.kind == billing::LineKind::kCorrection) continue;
    INFO(line.queue, " ", name_of(line.kind), " ", line.borrower, " job ", line.job.valid() ? line.job.value() : 0);
    CHECK_EQ(opened_amount(desk, line, facts), line.amount_micro);
  }
}

}  // namespace

TEST_CASE("every line of a bill opens into stretches that add up to it, to the micro-unit") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const RandomMonth month(seed);
    BillingDesk desk(month.log());
    check_all_lines(desk, {odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}});
    const Timestamp middle{kBilled.begin.ms + 20 * kDayOfBill};  // while the month goes on
    const RandomMonth half(seed, middle);
    BillingDesk early(half.log());
    check_all_lines(early, {odd_prices(), 1, {}, Timestamp{middle.ms + 12'345}});
  }
}

TEST_CASE("a line of a floor is told in parts that add up to it, wherever the marks of the log are") {
  const RandomMonth month(3);
  const BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}};
  for (const LineLimits limits : {LineLimits{4, 2, 2, 5}, LineLimits{1, 1, 1, 1}, LineLimits{50, 7, 3, 1000}}) {
    BillingDesk desk(month.log(), limits);
    check_all_lines(desk, facts);
  }
}

TEST_CASE("a line of a job names the events of the job, and a correction its own") {
  const RandomMonth month(1);
  BillingDesk desk(month.log());
  const BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}};
  const auto bill = desk.bill({"", "2026-11"}, facts);
  REQUIRE(bill.has_value());
  int jobs = 0;
  int corrections = 0;
  for (const billing::InvoiceLine& line : bill->lines) {
    const auto opened = desk.open({"2026-11", billing::line_id(line)}, facts);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    if (line.kind == billing::LineKind::kCorrection) {
      ++corrections;
      REQUIRE_EQ(opened->events.size(), 1);
      CHECK(std::holds_alternative<BillCorrected>(opened->events[0].event));
    } else if (line.job.valid()) {
      ++jobs;
      for (const EventRecord& event : opened->events) CHECK_EQ(job_of(event.event), line.job);
      CHECK(std::holds_alternative<JobSubmitted>(opened->events.front().event));
      if (line.cause == billing::kOffPeak) continue;  // its stretches begin and end with the windows, too
      for (const billing::BilledStretch& one : opened->stretches) {
        if (one.stretch.began == 0) CHECK((one.stretch.from == line.from));
        if (one.stretch.ended == 0) CHECK((one.stretch.to == line.to));
      }
    }
  }
  CHECK(jobs > 10);
  CHECK(corrections > 0);
}

TEST_CASE("what is no line, or none of this bill, is told") {
  const RandomMonth month(1);
  BillingDesk desk(month.log());
  const BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}};
  for (const char* line : {"", "x", "-", "17", "17:3", "99999999999999999999-1"})
    CHECK(desk.open({"2026-11", line}, facts).error().code == ErrorCode::kInvalid);
  for (const char* line : {"17-", "0-000000000000", "1-0123456789ab", "987654-0123456789ab"})
    CHECK(desk.open({"2026-11", line}, facts).error().code == ErrorCode::kNotFound);
  const auto bill = desk.bill({"", "2026-11"}, facts);
  REQUIRE(bill.has_value());
  for (const billing::InvoiceLine& line : bill->lines) {
    if (line.kind != billing::LineKind::kFloorIdle) continue;
    for (const char* after : {"x", "1", "1.", "1.2", "1793491200000.-1", "9999999999999999999.1", "1793491200000.1x"})
      CHECK(desk.open({"2026-11", billing::line_id(line), after}, facts).error().code == ErrorCode::kInvalid);
    break;
  }
}

TEST_CASE("a month before the first event of the log is not closed") {
  const RandomMonth month(1);
  BillingDesk desk(month.log());
  const BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}};
  const auto refused = desk.closing("2026-09", facts);
  REQUIRE_FALSE(refused.has_value());
  CHECK_EQ(refused.error().message,
           "month 2026-09 was over before the first event of the log; there is nothing to close");
  CHECK(desk.closing("2026-10", facts).has_value());  // the log begins within it
}

TEST_CASE("a past month is billed by the names of that time, also to a queue that is gone") {
  const RandomMonth month(1);
  BillingDesk desk(month.log());
  BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}};
  facts.queue_is_gone = true;
  const auto all = desk.bill({"", "2026-11"}, facts);
  REQUIRE(all.has_value());
  REQUIRE_FALSE(all->lines.empty());
  const std::string& queue = all->lines.front().queue;
  const auto gone = desk.bill({queue, "2026-11"}, facts);
  REQUIRE(gone.has_value());
  CHECK_EQ(gone->lines.front().queue, queue);
  const auto never = desk.bill({"never/there", "2026-11"}, facts);
  REQUIRE_FALSE(never.has_value());
  CHECK(never.error().code == ErrorCode::kNotFound);
  facts.queue_is_gone = false;
  CHECK(desk.bill({"never/there", "2026-11"}, facts)->lines.empty());
}

TEST_CASE("a month that is not closed and has corrections on its bill is found") {
  const RandomMonth month(1);
  BillingDesk desk(month.log());
  BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}};
  CHECK_EQ(desk.corrected_open_month(facts).value(), "2026-10");
  facts.closed["2026-10"] = {};
  CHECK_EQ(desk.corrected_open_month(facts).value(), "2026-11");
  for (const char* closed : {"2026-11", "2026-12"}) facts.closed[closed] = {};
  CHECK_EQ(desk.corrected_open_month(facts).value(), "");
}

TEST_CASE("what budgets are watched by is there also where a model has no price") {
  const RandomMonth month(1, Timestamp{kBilled.end.ms - 5 * kDayOfBill});
  BillingDesk desk(month.log());
  BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms - 4 * kDayOfBill}};
  for (PricePeriod& period : facts.prices.periods)
    std::erase_if(period.gpus, [](const auto& one) { return one.model == "A100"; });
  CHECK_FALSE(desk.bill({"", "2026-11"}, facts).has_value());
  const auto known = desk.used_in({kBilled}, facts);
  REQUIRE(known.has_value());
  CHECK(known->at(0).unpriced.find("GPUs of model A100 were there in 2026-11") != std::string::npos);
  Int128 money = 0;
  for (const auto& [queue, use] : known->at(0).uses) money += use.money_micro;
  CHECK((money > 0));  // of the H100
}

TEST_CASE("what is used in a month is its bill, and the parts of it add up to the whole") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const RandomMonth month(seed);
    BillingDesk desk(month.log());
    const BillingFacts facts{odd_prices(), 1, {}, Timestamp{kBilled.end.ms + kDayOfBill}};
    const Timestamp middle{kBilled.begin.ms + 13 * kDayOfBill + 12'345};
    const Timestamp early{kBilled.begin.ms - 400 * kDayOfBill};  // nothing was there
    const auto used = desk.used_in({kBilled,
                                    {"", kBilled.begin, middle},
                                    {"", middle, kBilled.end},
                                    {"", early, middle},
                                    {"", early, kBilled.begin}},
                                   facts);
    REQUIRE_MESSAGE(used.has_value(), used.error().message);
    const auto bill = desk.bill({"", "2026-11"}, facts);
    REQUIRE(bill.has_value());
    CHECK((used->at(0).uses == billing::uses_of(*bill)));
    billing::QueueUses parts = used->at(1).uses;
    billing::add_to(parts, used->at(2).uses);
    for (const auto& [queue, use] : used->at(0).uses) CHECK((parts[queue].gpu_milli_ms == use.gpu_milli_ms));
    billing::QueueUses long_ago = used->at(4).uses;
    billing::add_to(long_ago, used->at(1).uses);
    CHECK((used->at(3).uses == long_ago));
  }
}

namespace {

// Two nodes of different models; that of the A100s leaves in October.
struct TwoModels {
  state::State state;
  billing::Meter meter;
  Seq seq = 0;

  void at(const char* time, Event event) {
    const EventRecord record{++seq, from_iso8601(time).value(), std::move(event)};
    state.apply(record);
    meter.apply(record);
  }
  void add_node(const char* time, std::uint32_t id, const std::string& model) {
    NodeRegistered event;
    event.node = NodeId(id);
    event.spec.name = "n" + std::to_string(id);
    event.spec.pool = "default";
    event.spec.cpu_milli = 8000;
    event.spec.memory_mib = 8192;
    event.spec.gpus.resize(2);
    for (std::size_t g = 0; g < 2; ++g) {
      event.spec.gpus[g].uuid = event.spec.name + "-" + std::to_string(g);
      event.spec.gpus[g].model = model;
    }
    at(time, event);
  }

  TwoModels() {
    ClusterConfigured configured;
    configured.config = default_cluster_config();
    configured.config.gpu_models = {{"H100", 1000, 81'920}, {"A100", 1000, 81'920}};
    configured.version = 1;
    at("2026-09-10T00:00:00Z", configured);
    add_node("2026-09-10T00:00:00Z", 0, "H100");
    add_node("2026-09-10T00:00:00Z", 1, "A100");
    NodeRegistered bare;  // its GPUs are taken out
    bare.node = NodeId(1);
    bare.spec = state.nodes()[1].spec;
    bare.spec.gpus.clear();
    at("2026-10-15T00:00:00Z", bare);
  }

  std::string mistakes(const PriceBook& book) const {
    std::string text;
    for (const PriceMistake& one : price_mistakes(state, meter, book, from_iso8601("2026-11-20").value()))
      text += std::to_string(one.period) + " " + one.path + ": " + one.message + "\n";
    return text;
  }
};

PriceBook prices_from(const std::vector<std::pair<const char*, std::vector<const char*>>>& entries) {
  PriceBook book{"EUR", {}};
  for (const auto& [day, models] : entries) {
    PricePeriod& period = book.periods.emplace_back();
    period.valid_from = from_iso8601(day).value();
    for (const char* model : models) period.gpus.push_back({model, 2'000'000, 3'000'000, {}});
  }
  return book;
}

}  // namespace

TEST_CASE("an entry of the prices has a price for each GPU model that was there in a month that is not closed") {
  TwoModels two;
  CHECK_EQ(two.mistakes(prices_from({{"2026-09-01", {"H100", "A100"}}})), "");
  CHECK_EQ(two.mistakes(prices_from({{"2026-09-01", {"H100", "A100"}}, {"2026-11-01", {"H100"}}})), "");
  CHECK_EQ(two.mistakes(prices_from({{"2026-09-01", {"H100", "A100"}}, {"2026-10-01", {"H100"}}})),
           "1 gpus: GPUs of A100 were there in 2026-10, which is not closed, and these prices have none for it; add it "
           "under gpus\n");
  CHECK_EQ(two.mistakes(prices_from({{"2026-11-01", {"H100"}}})),
           "");  // what was before the first prices costs nothing
  // The model that is there now has to be in each entry that is in force from now on, whatever the last one has.
  CHECK(two.mistakes(prices_from({{"2026-11-01", {"A100"}}, {"2027-01-01", {"H100", "A100"}}}))
            .starts_with("0 gpus: nodes have GPUs of H100, and these prices have none for it"));
  CHECK(two.mistakes(prices_from({{"2026-11-01", {"H100"}}, {"2027-01-01", {"A100"}}}))
            .starts_with("1 gpus: nodes have GPUs of H100, and these prices have none for it"));
  for (const char* month : {"2026-09", "2026-10"})
    two.at("2026-11-19T00:00:00Z", MonthClosed{.month = month, .price_version = 1, .hash = "h", .user = "op"});
  CHECK_EQ(two.mistakes(prices_from({{"2026-09-01", {"H100"}}})), "");  // closed months keep their prices
}

namespace {

// A log that grows, and a desk that is asked for one period in between.
struct GrowingLog {
  Month period{"", from_iso8601("2026-11-10").value(), from_iso8601("2026-12-20").value()};
  billing::LedgerStory story{kBilled.end.ms};
  store::MemoryLog log;
  std::uint64_t epoch = log.take_epoch().value();
  BillingDesk desk{log};
  BillingFacts facts{{}, 0, {}, {}};

  static std::int64_t at(const char* text) { return from_iso8601(text).value().ms; }
  // Renames the only queue.
  void rename(const char* when, const std::string& from, const std::string& to) {
    ClusterConfigured event;
    event.config.queues.emplace_back().path = to;
    event.moves = {{from, to}};
    story.at(at(when), event);
  }
  // Returns the GPU-hours of the queue, which is the only one.
  std::int64_t hours(const char* now, const std::string& queue, BillingDesk& asked) {
    std::vector<store::Record> records;
    for (std::size_t i = log.last().seq; i < story.events.size(); ++i)
      records.push_back(store::to_record(story.events[i], epoch));
    if (!records.empty()) REQUIRE(log.append(epoch, log.last().seq + 1, records).has_value());
    facts.now = from_iso8601(now).value();
    const auto used = asked.used_in({period}, facts);
    REQUIRE_MESSAGE(used.has_value(), used.error().message);
    CHECK_EQ(used->at(0).uses.size(), 1);
    const auto found = used->at(0).uses.find(queue);
    return found == used->at(0).uses.end() ? -1 : static_cast<std::int64_t>(found->second.gpu_milli_ms / 3'600'000'000);
  }
  // As the desk that has read on says, and one that reads all of it.
  std::int64_t hours(const char* now, const std::string& queue) {
    BillingDesk fresh(log);
    const std::int64_t read_on = hours(now, queue, desk);
    CHECK_EQ(hours(now, queue, fresh), read_on);
    return read_on;
  }
};

}  // namespace

TEST_CASE("a period of several months is read on as it goes, and follows its queue to another name") {
  GrowingLog grows;
  grows.story.configure(grows.at("2026-11-05"), {{"a", 0}});
  grows.story.add_node(grows.at("2026-11-05"), 0, 8);
  grows.story.submit(grows.at("2026-11-08"), 1, "a");
  grows.story.start(grows.at("2026-11-08"), 1, 0, {0, 1, 2, 3}, false);
  CHECK_EQ(grows.hours("2026-11-10T12:00Z", "a"), 48);
  grows.story.end(grows.at("2026-11-20"), 1);
  CHECK_EQ(grows.hours("2026-11-21", "a"), 960);
  grows.rename("2026-11-25", "a", "b");
  CHECK_EQ(grows.hours("2026-11-26", "b"), 960);
  grows.story.submit(grows.at("2026-12-02"), 2, "b");
  grows.story.start(grows.at("2026-12-02"), 2, 0, {0, 1}, false);
  CHECK_EQ(grows.hours("2026-12-03", "b"), 1008);
  grows.rename("2026-12-04", "b", "c");
  CHECK_EQ(grows.hours("2026-12-05", "c"), 1104);
  grows.rename("2026-12-21", "c", "d");
  CHECK_EQ(grows.hours("2026-12-25", "d"), 1824);  // until the 20th
}

}  // namespace berth::daemon

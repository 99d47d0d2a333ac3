#include "billing/budget_marks.h"

#include <doctest/doctest.h>

namespace berth::billing {
namespace {

constexpr std::int64_t kBudgetHour = 3'600'000;

BudgetConfig granted(std::int64_t gpu_hours) {
  return {0, gpu_hours * 1000, BudgetAction::kStopStarting, from_iso8601("2026-11-10").value(),
          from_iso8601("2027-01-10").value()};
}

QueueUses used(std::int64_t gpu_hours) { return {{"a", {0, Int128{gpu_hours} * 1000 * kBudgetHour}}}; }

Timestamp day(const char* text) { return from_iso8601(text).value(); }

}  // namespace

TEST_CASE("what a queue uses is that of its jobs and of those below it, and of no other queue") {
  Invoice invoice;
  const auto add = [&](const std::string& queue, LineKind kind, std::int64_t gpu_milli_ms, std::int64_t micro) {
    InvoiceLine& line = invoice.lines.emplace_back();
    line.queue = queue;
    line.kind = kind;
    line.gpu_milli_ms = gpu_milli_ms;
    line.amount_micro = micro;
  };
  add("a", LineKind::kFloorUsed, 600 * kBudgetHour, 5);
  add("a", LineKind::kFloorIdle, 900 * kBudgetHour, 7);  // held, and used by no job
  add("a/x", LineKind::kBurst, 400 * kBudgetHour, 3);
  add("ab", LineKind::kBurst, 100 * kBudgetHour, 100);
  const QueueUses uses = uses_of(invoice);
  const Timestamp now = day("2026-11-15");
  const auto hours = mark_passed({"a", {0, 1000, BudgetAction::kTell}, {}}, &uses, now);
  REQUIRE(hours.has_value());
  CHECK_EQ(hours->used, 1000);
  CHECK_EQ(hours->percent, 100);
  CHECK_EQ(hours->month, "2026-11");
  CHECK_EQ(hours->until, day("2026-12-01"));
  const auto money = mark_passed({"a", {30, 0, BudgetAction::kTell}, {}}, &uses, now);
  REQUIRE(money.has_value());
  CHECK_EQ(money->used, 15);
  CHECK_EQ(money->percent, 50);
}

TEST_CASE(
    "where something has no price, budgets in GPU-hours are watched all the same, and those in money keep theirs") {
  const Timestamp now = day("2026-11-15");
  const PeriodUse use{used(900), "GPUs of model A100 were there"};
  const WatchedBudget hours{"a", {0, 1'000'000, BudgetAction::kStopStarting}, {}};
  const WatchedBudget money{"a", {5, 0, BudgetAction::kStopStarting}, {100, "2026-11", day("2026-12-01"), 5, 5}};
  CHECK_EQ(mark_passed(hours, known_use(hours, use), now)->percent, 80);
  CHECK_FALSE(mark_passed(money, known_use(money, use), now).has_value());
  const PeriodUse priced{use.uses, ""};
  CHECK_EQ(mark_passed(money, known_use(money, priced), now)->percent, 0);
}

TEST_CASE("a mark is told when it is reached, and only once") {
  WatchedBudget one{"a", granted(10), {}};
  const Timestamp now = day("2026-12-15");
  std::vector<std::int32_t> told;
  for (const std::int64_t hours : {0, 4, 5, 7, 8, 9, 10, 11}) {
    const QueueUses uses = used(hours);
    const auto mark = mark_passed(one, &uses, now);
    if (!mark) continue;
    CHECK_EQ(mark->of, BudgetKind::kGrant);
    CHECK_EQ(mark->month, "");
    CHECK_EQ(mark->until, one.budget.until);
    told.push_back(mark->percent);
    one.mark = {mark->percent, mark->month, mark->until, mark->used, mark->limit, mark->ended};
  }
  CHECK_EQ(told, std::vector<std::int32_t>{50, 80, 100});
  const QueueUses less = used(7);  // lower prices, or a refund
  CHECK_EQ(mark_passed(one, &less, now)->percent, 50);
}

TEST_CASE("a budget is set back by a new month, and a grant is not") {
  const QueueUses none;
  const QueueUses half = used(6);
  const BudgetMark of_november{100, "2026-11", day("2026-12-01"), 12'000, 10'000};
  const WatchedBudget budget{"a", {0, 10'000, BudgetAction::kTell}, of_november};
  CHECK_EQ(mark_passed(budget, &none, day("2026-12-01"))->percent, 0);
  CHECK_EQ(mark_passed(budget, &half, day("2026-12-01"))->percent, 50);
  const WatchedBudget grant{"a", granted(10), {50, "", day("2027-01-10"), 6000, 10'000}};
  CHECK_FALSE(mark_passed(grant, &half, day("2026-12-01")).has_value());
}

TEST_CASE("a grant has no marks before it begins, and ends once, whether its use is known or not") {
  WatchedBudget one{"a", granted(10), {}};
  const QueueUses all = used(20);
  CHECK_FALSE(mark_passed(one, &all, Timestamp{one.budget.from.ms - 1}).has_value());
  CHECK_EQ(mark_passed(one, &all, one.budget.from)->percent, 100);
  one.mark = {80, "", one.budget.until, 8500, 10'000};
  CHECK_FALSE(mark_passed(one, nullptr, Timestamp{one.budget.until.ms - 1}).has_value());
  const QueueUses most = used(9);
  for (const QueueUses* uses : {static_cast<const QueueUses*>(nullptr), &most}) {
    const auto ended = mark_passed(one, uses, one.budget.until);
    REQUIRE(ended.has_value());
    CHECK(ended->ended);
    CHECK_EQ(ended->percent, 80);
    CHECK_EQ(ended->used, uses == nullptr ? 8500 : 9000);
  }
  one.mark.ended = true;
  CHECK_FALSE(mark_passed(one, &all, one.budget.until).has_value());
}

TEST_CASE("what was used stays with a queue that is renamed") {
  QueueUses uses = used(3);
  uses["a/x"].money_micro = 4;
  uses["b"].money_micro = 5;
  rename_queues(uses, {{"a", "c"}});
  CHECK_FALSE(uses.contains("a"));
  CHECK_EQ(uses.at("c").gpu_milli_ms, Int128{3000} * kBudgetHour);
  CHECK_EQ(uses.at("c/x").money_micro, 4);
  CHECK_EQ(uses.at("b").money_micro, 5);
}

}  // namespace berth::billing

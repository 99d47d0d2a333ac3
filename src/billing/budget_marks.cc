#include "billing/budget_marks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/planted.h"
#include "model/queue_path.h"

namespace berth::billing {
namespace {

constexpr std::array kBudgetMarks{100, 80, 50};
constexpr std::int64_t kMsOfHour = 3'600'000;

std::int64_t used_of(const WatchedBudget& one, const QueueUses& uses) {
  Int128 used = 0;
  for (auto use = uses.lower_bound(one.queue); use != uses.end() && use->first.starts_with(one.queue); ++use) {
    if (is_at_or_below(use->first, one.queue))
      used += one.budget.is_money() ? use->second.money_micro : use->second.gpu_milli_ms;
  }
  if (!one.budget.is_money()) used /= kMsOfHour;
  constexpr Int128 kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(used, -kMost, kMost));
}

std::int32_t percent_of(std::int64_t used, std::int64_t limit) {
  const auto passed = std::find_if(kBudgetMarks.begin(), kBudgetMarks.end(),
                                   [&](int percent) { return Int128{used} * 100 >= Int128{limit} * percent; });
  return passed == kBudgetMarks.end() ? 0 : *passed;
}

}  // namespace

QueueUses uses_of(const Invoice& invoice) {
  QueueUses uses;
  for (const InvoiceLine& line : invoice.lines) {
    QueueUse& use = uses[line.queue];
    use.money_micro += line.amount_micro;
    const bool by_job = line.kind == LineKind::kFloorUsed || line.kind == LineKind::kBurst;
    if (by_job) use.gpu_milli_ms += line.gpu_milli_ms;
  }
  return uses;
}

void add_to(QueueUses& sum, const QueueUses& more) {
  for (const auto& [queue, use] : more) {
    QueueUse& one = sum[queue];
    one.money_micro += use.money_micro;
    one.gpu_milli_ms += use.gpu_milli_ms;
  }
}

void rename_queues(QueueUses& uses, const std::vector<QueueMove>& moves) {
  if (moves.empty()) return;
  QueueUses renamed;
  for (const auto& [queue, use] : uses) add_to(renamed, {{moved_path(queue, moves), use}});
  uses = std::move(renamed);
}

const QueueUses* known_use(const WatchedBudget& one, const PeriodUse& use) {
  return one.budget.is_money() && !use.unpriced.empty() ? nullptr : &use.uses;
}

std::optional<BudgetMarked> mark_passed(const WatchedBudget& one, const QueueUses* uses, Timestamp now) {
  const auto period = one.budget.period_at(now);
  if (!period || one.mark.ended) return std::nullopt;
  const bool grant = one.budget.kind() == BudgetKind::kGrant;
  const bool ended = grant && now >= period->end;
  if (uses == nullptr && !ended) return std::nullopt;
  const std::int64_t used = uses == nullptr ? one.mark.used : used_of(one, *uses);
  const std::int32_t percent = uses == nullptr ? one.mark.percent : percent_of(used, one.budget.limit());
  if (planted(Bug::kMonthNotBegun) && percent < one.mark.percent) return std::nullopt;
  const bool same_period = percent == 0 || grant || one.mark.month == period->name;
  if (one.mark.percent == percent && !ended && same_period) return std::nullopt;
  return BudgetMarked{one.queue,          percent,           period->name, period->end, used,
                      one.budget.limit(), one.budget.kind(), ended};
}

}  // namespace berth::billing

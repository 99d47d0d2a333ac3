#pragma once
// Which marks the use of budgets and grants has passed, by the bills of their period. Both are decided in the same way;
// they differ only in the period (model/budget.h).

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "billing/invoice.h"
#include "model/budget.h"
#include "model/event.h"

namespace berth::billing {

struct QueueUse {
  Int128 money_micro = 0;
  Int128 gpu_milli_ms = 0;  // of its jobs
  bool operator==(const QueueUse&) const = default;
};
// By queue, each without the queues below it.
using QueueUses = std::map<std::string, QueueUse>;

// What was used in a period. Where something has no price, the money is not known (Invoice::unpriced).
struct PeriodUse {
  QueueUses uses;
  std::string unpriced = {};
  bool operator==(const PeriodUse&) const = default;
};

// Returns what the lines of the invoice come to.
QueueUses uses_of(const Invoice& invoice);
void add_to(QueueUses& sum, const QueueUses& more);
// Names the queues as they are called after the moves.
void rename_queues(QueueUses& uses, const std::vector<QueueMove>& moves);

// A budget or grant of a queue, and the last mark of it.
struct WatchedBudget {
  std::string queue;
  BudgetConfig budget;
  BudgetMark mark;
};

// Returns what was used, or null if it is not known in the unit of the budget: in money, where something has no price.
const QueueUses* known_use(const WatchedBudget& one, const PeriodUse& use);

// Returns the mark that differs from the last one, by what was used in its period until now; or nothing. A grant that
// is over has ended, whatever was used of it. `uses` null: it is not known, and then a grant can only end.
std::optional<BudgetMarked> mark_passed(const WatchedBudget& one, const QueueUses* uses, Timestamp now);

}  // namespace berth::billing

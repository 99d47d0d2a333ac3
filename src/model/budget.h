#pragma once
// Budgets and grants of queues: an amount of money or GPU-hours that the jobs of a queue and below may use in a period,
// and the marks that their use passes (50, 80, 100 percent). A budget is for each month of UTC, and is set back when
// the next one begins. A grant is for one period, and has ended after it. Everything else is the same for both.

#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "base/timestamp.h"
#include "model/month.h"

namespace berth {

enum class BudgetKind { kBudget, kGrant };
BERTH_ENUM_NAMES(BudgetKind, "budget", "grant");

// What happens when it is used up, or when a grant has ended. What runs goes on in any case.
enum class BudgetAction { kTell, kStopBorrowing, kStopStarting };
BERTH_ENUM_NAMES(BudgetAction, "tell", "stop-borrowing", "stop-starting");

// Either money or GPU-hours is stated.
struct BudgetConfig {
  std::int64_t money_micro = 0;      // 0: not stated
  std::int64_t gpu_milli_hours = 0;  // 0: not stated
  BudgetAction when_used_up = BudgetAction::kTell;
  Timestamp from = {};   // grants
  Timestamp until = {};  // grants: when it ends; 0: a budget
  bool operator==(const BudgetConfig&) const = default;
  static constexpr auto fields() {
    return field_list(field("money_micro", &BudgetConfig::money_micro),
                      field("gpu_milli_hours", &BudgetConfig::gpu_milli_hours),
                      field("when_used_up", &BudgetConfig::when_used_up), field_if_set("from", &BudgetConfig::from),
                      field_if_set("until", &BudgetConfig::until));
  }
  bool is_money() const { return money_micro != 0; }
  // In micro units of money, or in milli-GPU-hours.
  std::int64_t limit() const { return is_money() ? money_micro : gpu_milli_hours; }
  BudgetKind kind() const { return until == Timestamp() ? BudgetKind::kBudget : BudgetKind::kGrant; }
  // Returns the period in which the time lies, or the last one: the month, or that of the grant, which has no name.
  // Nothing: the grant has not begun.
  std::optional<Month> period_at(Timestamp time) const {
    if (kind() == BudgetKind::kBudget) return month_at(time);
    return time < from ? std::nullopt : std::optional(Month{"", from, until});
  }
};

// The last mark that the use has passed in its period. It is in force until the next one.
struct BudgetMark {
  std::int32_t percent = 0;
  std::string month;       // of a budget
  Timestamp until;         // the end of the period
  std::int64_t used = 0;   // as BudgetConfig::limit()
  std::int64_t limit = 0;  // likewise
  bool ended = false;      // of a grant
  bool operator==(const BudgetMark&) const = default;
  static constexpr auto fields() {
    return field_list(field("percent", &BudgetMark::percent), field("month", &BudgetMark::month),
                      field("until", &BudgetMark::until), field("used", &BudgetMark::used),
                      field("limit", &BudgetMark::limit), field_if_set("ended", &BudgetMark::ended));
  }
};

}  // namespace berth

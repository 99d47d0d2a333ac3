// Prices, closed months and the marks of budgets.

#include "model/month.h"
#include "state/state.h"

namespace berth::state {

void State::on(const PricesApplied& event) {
  prices_ = event.book;
  price_version_ = event.version;
}

void State::on(const MonthClosed& event) {
  const auto [month, fresh] = closed_months_.emplace(event.month, ClosedMonth{event, now_});
  BERTH_CHECK(fresh);
  const auto closed = month_of(event.month);
  if (!closed) return;
  std::erase_if(quantity_reports_,
                [&](const auto& one) { return one.second.from >= closed->begin && one.second.from < closed->end; });
}

void State::on(const BillCorrected& event) {
  if (!event.key.empty()) corrections_.emplace(event.user + '\n' + event.key, event);
}

void State::on(const QuantityReported& event) { quantity_reports_.emplace(event.id, event); }

const BillCorrected* State::correction_of(std::string_view user, std::string_view key) const {
  const auto found = corrections_.find(std::string(user) + '\n' + std::string(key));
  return found == corrections_.end() ? nullptr : &found->second;
}

// All parked classes are tried again after it, because it may have ended what refused them (State::apply).
void State::on(const BudgetMarked& event) {
  QueueState& queue = queue_mut(queue_paths_.find(event.queue)->second);
  std::optional<BudgetState>& budget = queue.budget(event.of);
  BERTH_CHECK(budget.has_value());
  const auto stops = [&] {
    return budget->stops(BudgetAction::kStopStarting) || budget->stops(BudgetAction::kStopBorrowing);
  };
  const bool stopped = stops();
  budget->mark = {event.percent, event.month, event.until, event.used, event.limit, event.ended};
  if (stopped && !stops()) ++opportunity_;  // nothing else may happen that lets a cycle run
}

bool State::load_marks(BudgetKind kind, const std::vector<std::pair<QueueId, BudgetMark>>& marks) {
  for (const auto& [id, mark] : marks) {
    if (!id.valid() || id.index() >= queues_.size() || !queues_[id.index()].budget(kind)) return false;
    queue_mut(id).budget(kind)->mark = mark;
  }
  return true;
}

SavedMoney State::saved_money() const {
  SavedMoney money;
  money.prices = prices_;
  money.price_version = price_version_;
  for (const auto& [month, closed] : closed_months_) money.closed.push_back(closed);
  for (const auto& [id, report] : quantity_reports_) money.reports.push_back(report);
  for (const auto& [key, correction] : corrections_) money.corrections.push_back(correction);
  for (const QueueState& queue : queues_) {
    for (const auto& [kind, marks] :
         {std::pair(BudgetKind::kBudget, &money.marks), std::pair(BudgetKind::kGrant, &money.grant_marks)}) {
      const auto& budget = queue.budget(kind);
      if (budget && budget->mark != BudgetMark()) marks->emplace_back(queue.id, budget->mark);
    }
  }
  return money;
}

bool State::load_money(SavedMoney money) {
  prices_ = std::move(money.prices);
  price_version_ = money.price_version;
  for (ClosedMonth& closed : money.closed) {
    std::string month = closed.month;
    closed_months_.emplace(std::move(month), std::move(closed));
  }
  for (QuantityReported& report : money.reports) {
    std::string id = report.id;
    quantity_reports_.emplace(std::move(id), std::move(report));
  }
  for (BillCorrected& correction : money.corrections) {
    std::string key = correction.user + '\n' + correction.key;
    corrections_.emplace(std::move(key), std::move(correction));
  }
  return load_marks(BudgetKind::kBudget, money.marks) && load_marks(BudgetKind::kGrant, money.grant_marks);
}

}  // namespace berth::state

// Prices, closed months and the marks of budgets.

#include "state/state.h"

namespace berth::state {

void State::on(const PricesApplied& event) {
  prices_ = event.book;
  price_version_ = event.version;
}

void State::on(const MonthClosed& event) {
  const auto [month, fresh] = closed_months_.emplace(event.month, ClosedMonth{event, now_});
  BERTH_CHECK(fresh);
}

// All parked classes are tried again after it, because it may have ended what refused them (State::apply).
void State::on(const BudgetMarked& event) {
  QueueState& queue = queue_mut(queue_paths_.find(event.queue)->second);
  BERTH_CHECK(queue.budget.has_value());
  queue.budget_mark = {event.percent, event.month, event.until, event.used, event.limit};
}

SavedMoney State::saved_money() const {
  SavedMoney money{prices_, price_version_, {}, {}};
  for (const auto& [month, closed] : closed_months_) money.closed.push_back(closed);
  for (const QueueState& queue : queues_) {
    if (queue.budget_mark != BudgetMark()) money.marks.emplace_back(queue.id, queue.budget_mark);
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
  for (const auto& [id, mark] : money.marks) {
    if (!id.valid() || id.index() >= queues_.size() || !queues_[id.index()].budget) return false;
    queue_mut(id).budget_mark = mark;
  }
  return true;
}

}  // namespace berth::state

#include "sim/world/budgets.h"

#include <algorithm>

#include "billing/budget_marks.h"
#include "billing/ledger.h"
#include "billing/rate.h"
#include "store/event_codec.h"

namespace berth::sim {

struct Budgets::Period {
  explicit Period(billing::Window window) : ledger(std::move(window)) {}
  billing::Ledger ledger;
  std::uint64_t next_seq = 1;
  bool asked_for = true;
};

Budgets::Budgets() = default;
Budgets::~Budgets() = default;

Result<Budgets::Period*> Budgets::read(const Month& span, const state::State& durable, const store::Log& log) {
  billing::Window window = billing::window_of(span, durable.prices());
  std::unique_ptr<Period>& kept = periods_[{span.begin, span.end}];
  if (kept == nullptr || kept->ledger.window() != window) kept = std::make_unique<Period>(std::move(window));
  Period& period = *kept;
  period.asked_for = true;
  if (period.next_seq > log.last().seq) return &period;
  const auto done = log.read(period.next_seq, [&](const store::Record& record) -> Result<bool> {
    auto event = store::to_event(record);
    if (!event) return event.error();
    period.ledger.apply(*event);
    period.next_seq = record.seq + 1;
    return true;
  });
  if (!done) return done.error();
  return &period;
}

Result<std::vector<BudgetMarked>> Budgets::look(const state::State& durable, const store::Log& log, Timestamp now) {
  for (auto& [span, period] : periods_) period->asked_for = false;
  std::vector<BudgetMarked> marks;
  for (const state::QueueState& queue : durable.queues()) {
    for (const auto& budget : queue.budgets) {
      if (queue.removed || !budget || budget->mark.ended) continue;
      if (budget->config.is_money() && durable.price_version() == 0) continue;
      const auto span = budget->config.period_at(now);
      if (!span) continue;
      const auto period = read(*span, durable, log);
      if (!period) return period.error();
      (*period)->ledger.look_ahead(std::min(now, span->end));
      const auto invoice =
          billing::make_invoice((*period)->ledger, {queue.path, *span, durable.prices(), durable.price_version()});
      if (!invoice) return invoice.error();
      const billing::QueueUses uses = billing::uses_of(*invoice);
      if (auto mark = billing::mark_passed({queue.path, budget->config, budget->mark}, &uses, now))
        marks.push_back(std::move(*mark));
    }
  }
  std::erase_if(periods_, [](const auto& one) { return !one.second->asked_for; });
  return marks;
}

}  // namespace berth::sim

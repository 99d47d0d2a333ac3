#include "control/money.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "model/month.h"

namespace berth::control {

using state::State;

namespace {

// The models of nodes that are not lost and that the last prices of the book leave out.
std::string models_without_price(const State& state, const PriceBook& book) {
  std::string names;
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const std::string& name = state.gpu_models()[m].name;
    if (state.capacity()[kDimFirstModel + m] == 0 || book.periods.back().gpu(name) != nullptr) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace

Result<Reply> apply_prices(Batch& batch, const ApplyPrices& command) {
  const State& state = batch.state();
  if (command.if_version.value_or(state.price_version()) != state.price_version())
    return Reply{.job = {}, .stale = true, .version = state.price_version()};
  if (auto ok = validate(command.book); !ok) return ok.error();
  if (const std::string names = models_without_price(state, command.book); !names.empty())
    return invalid("nodes have GPUs of " + names + ", and the last prices have none for it; add it under gpus");
  if (state.price_version() > 0 && state.prices() == command.book)
    return Reply{.job = {}, .unchanged = true, .version = state.price_version()};
  const std::uint64_t version = state.price_version() + 1;
  batch.emit(PricesApplied{command.book, version, command.user});
  return Reply{.job = {}, .version = version};
}

Result<Reply> close_month(Batch& batch, const CloseMonth& command) {
  const MonthClosed& closing = command.month;
  const auto month = month_of(closing.month);
  if (!month) return invalid("'" + closing.month.substr(0, 80) + "' is no month; give one such as 2026-11");
  if (const auto closed = batch.state().closed_months().find(closing.month);
      closed != batch.state().closed_months().end())
    return conflict("month " + closing.month + " was closed at " + to_iso8601(closed->second.closed) +
                    "; correct it by entries of their own (berth bill --correct)");
  if (month->end > batch.now()) return conflict("month " + closing.month + " ends at " + to_iso8601(month->end));
  batch.emit(closing);
  return Reply{};
}

Result<Reply> correct_bill(Batch& batch, const CorrectBill& command) {
  const BillCorrected& correction = command.correction;
  constexpr std::size_t kLongestReason = 200;
  const auto month = month_of(correction.month);
  if (!month) return invalid("'" + correction.month.substr(0, 80) + "' is no month; give one such as 2026-11");
  if (month->begin > batch.now()) return invalid("month " + correction.month + " is still to come");
  if (batch.state().queue_at(correction.queue) == nullptr)
    return not_found("no such queue '" + correction.queue.substr(0, 200) + "'");
  if (correction.amount_micro == 0 || std::abs(correction.amount_micro) > kMostPriceMicro * 1000)
    return invalid("a correction is an amount other than 0, and at most 100000000");
  const bool printable = std::none_of(correction.reason.begin(), correction.reason.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (correction.reason.empty() || correction.reason.size() > kLongestReason || !printable)
    return invalid("a correction needs a reason: 1 to 200 characters on one line");
  if (correction.key.size() > 256) return invalid("the idempotency key is longer than 256 bytes");
  if (const BillCorrected* known = batch.state().correction_of(correction.user, correction.key)) {
    if (*known == correction) return Reply{.job = {}, .repeated = true};
    return conflict("the idempotency key was used for another correction (" + money_text(known->amount_micro) +
                    " for " + known->month + " on queue " + known->queue + "); use a new key for a new one");
  }
  batch.emit(correction);
  return Reply{};
}

Result<Reply> mark_budget(Batch& batch, const MarkBudget& command) {
  const state::QueueState* queue = batch.state().queue_at(command.mark.queue);
  if (queue == nullptr || !queue->budget) return Reply{.job = {}, .unchanged = true};  // changed in between
  const BudgetMarked& mark = command.mark;
  if (queue->budget_mark.percent == mark.percent && queue->budget_mark.month == mark.month)
    return Reply{.job = {}, .unchanged = true};
  batch.emit(mark);
  return Reply{};
}

}  // namespace berth::control

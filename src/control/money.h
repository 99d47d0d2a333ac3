#pragma once
// Commands about money: prices, closing a month, corrections, reported quantities, and the marks of budgets. None of
// them touches a job that runs.

#include <optional>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"
#include "model/price_book.h"
#include "state/state.h"

namespace berth::control {

// Returns what keeps the book from being put in force, beyond the rules of its document. Each entry that is in force
// from now on needs a price of each GPU model of a node; each report of a month that is not closed needs one of its
// kind and unit; what the book in force prices since the first use, in such months, stays priced; and a currency stays
// while a queue has a budget in it. If the first use is not known, it is taken to be that of the present month.
std::vector<PriceMistake> price_mistakes(const state::State& state, const PriceBook& book, Timestamp now,
                                         std::optional<Timestamp> first_use = {});
// Refuses prices with such a mistake. A closed month keeps the version that it was billed at.
Result<Reply> apply_prices(Batch& batch, const ApplyPrices& command);
// Refuses a month that is not over or is closed already.
Result<Reply> close_month(Batch& batch, const CloseMonth& command);
// A key that the user has given before is the same correction; with other contents it is refused.
Result<Reply> correct_bill(Batch& batch, const CorrectBill& command);
// Stores all reports or none. One that is known by its id counts once; with other contents it is refused, and so is one
// for a closed month.
Result<Reply> report_quantities(Batch& batch, const ReportQuantities& command);
Result<Reply> mark_budget(Batch& batch, const MarkBudget& command);

}  // namespace berth::control

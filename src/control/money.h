#pragma once
// Commands about money: prices, closing a month, corrections, reported quantities, and the marks of budgets. None of
// them touches a job that runs.

#include "base/result.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

// Refuses prices that leave out a GPU model of a node. A closed month keeps the version that it was billed at.
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

#pragma once
// Converts finished jobs to rows of the history and back.

#include "base/result.h"
#include "control/batch.h"
#include "store/log.h"

namespace berth::daemon {

store::HistoryRow to_history(const control::FinishedJob& finished_job);
Result<control::FinishedJob> to_finished_job(const store::HistoryRow& row);

}  // namespace berth::daemon

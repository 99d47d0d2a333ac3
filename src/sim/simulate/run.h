#pragma once
// One run: the product's state, iteration, meter and fake fleet over a virtual clock, with one policy in the place of
// the scheduling cycle. Only the product's own code folds the events, and only what a report needs is stored. Equal
// workload, policy and seed give an equal run.

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "sim/report/run_result.h"
#include "sim/simulate/policy_spec.h"
#include "sim/simulate/run_prices.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

struct RunOrder {
  const Workload& workload;
  const PolicySpec& policy;
  std::uint64_t seed = 0;
  bool gantt = false;
  std::atomic<std::int64_t>* done = nullptr;       // number of completed jobs, for a progress bar
  const std::vector<RunPrices>* prices = nullptr;  // by which a run by the clock is billed; null: by none
};

// Runs the workload by the times of its trace until every job that can finish has finished. Error kUnavailable: the
// loop does not come to rest.
Result<RunResult> run_by_clock(const RunOrder& order);

// Runs the jobs in the given order (indexes into workload.jobs), without departures. Each job is submitted, tried in
// one cycle, and cancelled if it did not start.
Result<RunResult> run_in_order(const RunOrder& order, const std::vector<std::size_t>& arrivals);

}  // namespace berth::sim

#pragma once
// One run: the product's state, its turn of the loop, its meter and its fake fleet over a virtual clock, with one
// policy in the place of the scheduling cycle. Events are folded only by the product's own code; nothing is stored but
// what a report needs. The same workload, policy and seed give the same run.

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "sim/report/run_result.h"
#include "sim/simulate/policy_spec.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

struct RunOrder {
  const Workload& workload;
  const PolicySpec& policy;
  std::uint64_t seed = 0;
  bool gantt = false;
  std::atomic<std::int64_t>* done = nullptr;  // counts jobs that are through, for a progress bar
};

// By the trace's clock, until everything that can finish has. kUnavailable where the loop does not come to rest.
Result<RunResult> run_by_clock(const RunOrder& order);

// In the given order (indexes into workload.jobs), without departures: each job is submitted, tried in one cycle, and
// cancelled if it did not start.
Result<RunResult> run_in_order(const RunOrder& order, const std::vector<std::size_t>& arrivals);

}  // namespace berth::sim

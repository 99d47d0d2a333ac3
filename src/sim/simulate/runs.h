#pragma once
// Runs an experiment: each policy with each seed, in parallel on several cores. Results are in the order of policies,
// then seeds, for any number of threads.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/result.h"
#include "sim/report/run_result.h"
#include "sim/simulate/policy_spec.h"
#include "sim/simulate/run_prices.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

struct Experiment {
  const Workload& workload;
  std::vector<PolicySpec> policies;
  std::vector<std::uint64_t> seeds;
  // By seed: indexes into workload.jobs in order of arrival. Empty: by the times of the trace.
  std::map<std::uint64_t, std::vector<std::size_t>> arrivals;
  unsigned threads = 1;
  std::vector<RunPrices> prices = {};  // each run is billed by each of them
};

// Called now and then from one thread, with the number of completed jobs and of all jobs, over all runs.
using OnProgress = std::function<void(std::int64_t done, std::int64_t all)>;

// Returns all results, or the first error in the order of the runs.
Result<std::vector<RunResult>> run_all(const Experiment& experiment, const OnProgress& on_progress);

}  // namespace berth::sim

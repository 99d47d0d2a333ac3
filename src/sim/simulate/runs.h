#pragma once
// All runs of an experiment: each policy with each seed, in parallel where there are cores. The results come in the
// order of policies, then seeds, whatever the number of threads.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/result.h"
#include "sim/report/run_result.h"
#include "sim/simulate/policy_spec.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

struct Experiment {
  const Workload& workload;
  std::vector<PolicySpec> policies;
  std::vector<std::uint64_t> seeds;
  // By seed, indexes into workload.jobs. Empty: by the trace's clock.
  std::map<std::uint64_t, std::vector<std::size_t>> arrivals;
  unsigned threads = 1;
};

// Called now and then from one thread with how many jobs of how many are through, over all runs.
using OnProgress = std::function<void(std::int64_t done, std::int64_t all)>;

// The first error in the order of the runs, if any run failed.
Result<std::vector<RunResult>> run_all(const Experiment& experiment, const OnProgress& on_progress);

}  // namespace berth::sim

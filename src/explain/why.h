#pragma once
// Explains why a job does not run. The answer is computed from the state at each request.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "explain/find_remedy.h"
#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

struct Explanation {
  JobId job;
  Reason reason;                     // the constraint that blocks the job
  std::string summary;               // one sentence with the numbers
  std::vector<std::string> details;  // quota up to the root, what is free, jobs that are tried earlier, preemption
  std::vector<Remedy> changes;       // the smallest changes with which it would start now
};

// Returns the full explanation of a live job. `state` is changed during the search and restored.
Explanation why(state::State& state, JobId job, Timestamp now);

// Returns only reason and summary, for a pending job.
Explanation why_briefly(state::State& state, const state::JobState& job, Timestamp now);

// Returns one sentence for the reason, with names instead of ids.
std::string sentence(const state::State& state, const Reason& reason);

// amount_text returns an amount in the unit of its dimension: "8", "0.5", "64 GiB". dim_name returns the name of the
// dimension: "gpus", "cpus", "memory", or a GPU model.
std::string amount_text(std::size_t dim, std::int64_t amount);
std::string dim_name(const state::State& state, std::size_t dim);
// "2 GPUs", "1 H100 GPU", "4 GiB of memory", "2 GPU-equivalents".
std::string quantity_text(const state::State& state, std::size_t dim, std::int64_t amount);
// "queue a", "the cluster".
std::string queue_name(const state::State& state, QueueId queue);

}  // namespace berth::explain

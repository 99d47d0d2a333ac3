#pragma once
// Explain: why a job does not run, computed from the state when somebody asks.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "explain/find_remedy.h"
#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

struct Explanation {
  JobId job;
  Reason reason;                     // the blocking constraint
  std::string summary;               // one sentence with the numbers
  std::vector<std::string> details;  // quota on the way to the root, what is free, who is ahead and why, claims
  std::vector<Remedy> changes;       // the smallest that would start it now
};

// `state` is used as scratch paper and is as before afterwards.
Explanation why(state::State& state, JobId job, Timestamp now);

// Of a job that waits the reason and the summary alone.
Explanation why_briefly(state::State& state, const state::JobState& job, Timestamp now);

// One sentence for a reason, with names instead of ids.
std::string sentence(const state::State& state, const Reason& reason);

// "8", "0.5", "64 GiB": an amount in the unit of its dimension; and the dimension's name ("gpus", "cpus", "memory",
// ...).
std::string amount_text(std::size_t dim, std::int64_t amount);
std::string dim_name(const state::State& state, std::size_t dim);
// "2 GPUs", "1 H100 GPU", "4 GiB of memory", "2 GPU-equivalents".
std::string quantity_text(const state::State& state, std::size_t dim, std::int64_t amount);
// "queue a", "the cluster".
std::string queue_name(const state::State& state, QueueId queue);

}  // namespace berth::explain

#pragma once
// Explains why a job does not run. The answer is a pure function of the state, the job, the time and the viewer: what
// the viewer may not see is counted and not named. Nothing is remembered from earlier cycles.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "explain/find_remedy.h"
#include "explain/words.h"
#include "model/reason.h"
#include "model/why_answer.h"
#include "state/state.h"

namespace berth::explain {

struct Explanation {
  Reason reason;                 // the constraint that blocks the job
  std::vector<Remedy> remedies;  // the smallest changes with which it would start now
  WhyAnswer answer;              // the same and more in words, for the viewer
};

// Returns the full explanation of a live job. `state` is changed during the search and restored.
Explanation why(state::State& state, JobId job, Timestamp now, const Viewer& viewer);

struct Cause {
  Reason reason;
  std::string text;  // a predicate: "waits for 3 free GPUs; none is free now"
};

// Returns only the reason, for a pending job. `state` is that of `words`; it is changed and restored.
Cause why_briefly(state::State& state, const Words& words, const state::JobState& job);

// "Job 11 waits for 3 free GPUs; none is free now."
std::string job_sentence(JobId job, const std::string& predicate);

// amount_text returns an amount in the unit of its dimension: "8", "0.5", "64 GiB". dim_name returns the name of the
// dimension: "gpus", "cpus", "memory", or a GPU model.
std::string amount_text(std::size_t dim, std::int64_t amount);
std::string dim_name(const state::State& state, std::size_t dim);
// "2 GPUs", "1 H100 GPU", "4 GiB of memory", "2 GPU-equivalents".
std::string quantity_text(const state::State& state, std::size_t dim, std::int64_t amount);
// "queue a", "the cluster".
std::string queue_name(const state::State& state, QueueId queue);

}  // namespace berth::explain

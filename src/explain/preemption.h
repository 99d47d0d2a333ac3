#pragma once
// Explains whether a pending job may preempt or reclaim, from which jobs, or which limit forbids it. A limit is named
// only if it is the cause: without the limit, the job would fit once all possible victims had left.

#include <string>
#include <vector>

#include "explain/words.h"

namespace berth::explain {

struct PreemptionText {
  std::string in_short;           // which jobs could be stopped for the job, and what prevents it; or ""
  std::vector<std::string> more;  // why it cannot reclaim or preempt
};

// `state` is that of `words`; it is changed during the search and restored.
PreemptionText explain_preemption(state::State& state, const Words& words, const state::JobState& job);

}  // namespace berth::explain

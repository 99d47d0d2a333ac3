#pragma once
// Explains whether a pending job may preempt or reclaim, from which jobs, or which limit forbids it. A limit is named
// only if it is the cause: without the limit, the job would fit once all possible victims had left.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::explain {

// Returns one sentence for each fact. `state` is changed during the search and restored.
std::vector<std::string> explain_preemption(state::State& state, const state::JobState& job, Timestamp now);

}  // namespace berth::explain

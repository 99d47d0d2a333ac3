#pragma once
// Whether a waiting job may claim what others hold, from whom, or what forbids it. A limit is named only where it is
// what forbids the claim: that the job would fit if all of them left is asked first.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::explain {

// `state` is used as scratch paper.
std::vector<std::string> explain_preemption(state::State& state, const state::JobState& job, Timestamp now);

}  // namespace berth::explain

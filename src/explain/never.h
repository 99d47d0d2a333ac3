#pragma once
// What the fleet lacks, in numbers, for a job that it could not hold even if it were empty.

#include <string>

#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

// The end of a sentence that tells the reason, begun by ": ", or nothing: the first of GPUs, CPUs and memory of which a
// task asks more than any node has that it may use; or how many of its tasks would have room; or the GPUs that all its
// groups ask and those that there are.
std::string what_the_fleet_lacks(const state::State& state, const state::JobState& job, const Reason& reason);

}  // namespace berth::explain

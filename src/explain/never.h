#pragma once
// For a job that would not fit even into an empty fleet: what the fleet lacks, in numbers.

#include <string>

#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

// Returns a clause that says why `reason` is never-fits, or "". It names the first of these that applies:
//
// - a task requests more GPUs, CPUs or memory than any node has that it may use;
// - only some of its tasks have room;
// - all its groups together request more than there is.
std::string what_the_fleet_lacks(const state::State& state, const state::JobState& job, const Reason& reason);

}  // namespace berth::explain

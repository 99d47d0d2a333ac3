#pragma once
// What queues have to do with it: who is asked before a job and why, and the arithmetic of a queue's share.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::explain {

// How many jobs are asked before this one, and what makes the first of them more deserving: standing, share over
// weight, priority or age, at the queue where their ways part.
std::vector<std::string> explain_position(const state::State& state, const state::JobState& job, Timestamp now);

// Each resource's usage over the fleet, the dominant one over the weight (weighted DRF; Ghodsi et al., NSDI'11, 4.1),
// with past usage where it counts, what a parent counts after its children are rescaled; what is guaranteed, used
// within it, idle and lent or kept back, and borrowed; then where it stands among its siblings.
std::vector<std::string> explain_share(const state::State& state, const state::QueueState& queue, Timestamp now);

}  // namespace berth::explain

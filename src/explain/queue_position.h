#pragma once
// Explains the part of the queues: which jobs are tried before a job and why, and the arithmetic of a queue's share.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::explain {

// Returns how many jobs are tried before this one, and why the first of them comes earlier. The cause is found at the
// queue where the quota paths of both jobs part: within guarantee before borrowing, then share over weight, then
// priority, then age.
std::vector<std::string> explain_position(const state::State& state, const state::JobState& job, Timestamp now);

// Returns the arithmetic of the queue's share, one line for each fact:
//
// - the usage of each resource over the fleet, and the dominant one over the weight (weighted DRF; Ghodsi et al.,
//   NSDI'11, 4.1), with past usage if it counts;
// - for a parent, what counts after its children are rescaled;
// - for each guarantee: used within, idle, may be lent or kept back, and borrowed;
// - the rank of the queue among its siblings.
std::vector<std::string> explain_share(const state::State& state, const state::QueueState& queue, Timestamp now);

}  // namespace berth::explain

#pragma once
// Explains the part of the queues: how a job stands in line and why, and the arithmetic of a queue's share.

#include <optional>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "explain/words.h"
#include "model/why_answer.h"
#include "state/state.h"

namespace berth::explain {

// Returns the place of the job in line, and why the jobs ahead come earlier; nothing if the job is not in line. The
// cause is found at the queue where the quota paths of two jobs part: within guarantee before borrowing, then share
// over weight, then priority, then age.
std::optional<WhyAnswer::Line> place_in_line(const Words& words, const state::JobState& job);

// Returns the arithmetic of the queue's share, one line for each fact:
//
// - the usage of each resource over the fleet, and the dominant one over the weight (weighted DRF; Ghodsi et al.,
//   NSDI'11, 4.1), with past usage if it counts;
// - for a parent, what counts after its children are rescaled;
// - for each guarantee: used within, idle, may be lent or kept back, and borrowed;
// - the rank of the queue among its siblings.
std::vector<std::string> explain_share(const state::State& state, const state::QueueState& queue, Timestamp now);

}  // namespace berth::explain

#pragma once
// A second look at shares of GPUs, right before a start becomes an event. It knows the rules by code of its own:
// neither the table of sharing nor the index of shares is asked. What it finds is a bug in berth.

#include <span>
#include <string>

#include "model/job.h"
#include "state/state.h"

namespace berth::control {

// Returns what forbids these placements of the job; empty if nothing does. Forbidden is a share of a GPU
// 1. for a job with a latency objective;
// 2. beside a task of another trust domain, or beside one that has the GPU whole;
// 3. in a pool that gives no shares.
std::string find_forbidden_share(const state::State& state, const state::JobState& job,
                                 std::span<const TaskPlacement> placements);

}  // namespace berth::control

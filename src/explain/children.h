#pragma once
// Explain what consists of parts: a service or an array by its replicas or elements, and why an elastic gang that runs
// has no more tasks.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::explain {

// "it runs through its replicas: 0 of 2 run; job 13 waits (quota-max): queue a has ...". The first that waits stands
// for all.
std::string explain_children(state::State& state, const state::JobState& parent, Timestamp now);

// " with 1 of 4 tasks", or nothing for a gang that has all it asks for; and what keeps it from growing now.
std::string tasks_of_all(const state::JobState& gang);
std::vector<std::string> explain_growth(state::State& state, const state::JobState& gang, Timestamp now);

}  // namespace berth::explain

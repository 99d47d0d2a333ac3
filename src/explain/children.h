#pragma once
// Explains jobs by their parts: a service by its replicas, an array by its elements, and an elastic gang by the tasks
// that it does not have.

#include <string>
#include <vector>

#include "base/timestamp.h"
#include "state/state.h"

namespace berth::explain {

// Returns one sentence about a service or an array: "it runs through its replicas: 0 of 2 run; job 13 waits
// (quota-max): queue a has ...". Only the first pending replica or element is explained.
std::string explain_children(state::State& state, const state::JobState& parent, Timestamp now);

// tasks_of_all returns " with 1 of 4 tasks", or "" if the gang runs with all its tasks. explain_growth returns why the
// gang gets no more tasks now. Its list is empty if no task is missing.
std::string tasks_of_all(const state::JobState& gang);
std::vector<std::string> explain_growth(state::State& state, const state::JobState& gang, Timestamp now);

}  // namespace berth::explain

#pragma once
// Explains jobs by their parts: a service by its replicas, an array by its elements, and an elastic gang by the tasks
// that it does not have.

#include <string>
#include <vector>

#include "explain/words.h"

namespace berth::explain {

// Returns the predicate for a service or an array: "runs 0 of 2 replicas. Job 13 waits for quota: ...". Only the first
// pending replica or element is explained. `state` is that of `words`; it is changed and restored.
std::string explain_children(state::State& state, const Words& words, const state::JobState& parent);

// tasks_of_all returns " with 1 of 4 tasks", or "" if the gang runs with all its tasks. explain_growth returns why the
// gang gets no more tasks now. Its list is empty if no task is missing.
std::string tasks_of_all(const state::JobState& gang);
std::vector<std::string> explain_growth(state::State& state, const Words& words, const state::JobState& gang);

}  // namespace berth::explain

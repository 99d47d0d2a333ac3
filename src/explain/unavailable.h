#pragma once
// What closes nodes to a waiting job, in words: cordons, lost contact, failed GPUs, maintenance windows, and the rules
// of pools.

#include <string>
#include <vector>

#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

// Notes on a reason with this code, for the parentheses behind its sentence, none where they would not matter: free
// resources on nodes that a maintenance window closes to the job; nodes that are closed to new tasks and could hold one
// of the job's; failed GPUs of open nodes that could hold more of its tasks with them; open nodes that could hold one
// but run no containers.
std::vector<std::string> unavailable_notes(const state::State& state, const state::JobState& job, ReasonCode code);

// The end of the sentence: "; " and the rule of each pool that the job may not use, or nothing.
std::string closed_pools(const state::State& state, const state::JobState& job, ReasonCode code);

// "pool serving takes only inference jobs (this one is training)": for each pool with nodes that is closed to the job.
std::vector<std::string> pool_rules(const state::State& state, const state::JobState& job);

// "node n1 is under maintenance from T to U (window firmware), and the job might still run then: it has no time_limit"
std::string maintenance_sentence(const state::State& state, const Reason& reason);

}  // namespace berth::explain

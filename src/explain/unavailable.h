#pragma once
// What closes nodes to a waiting job, in words: cordons, lost contact, failed GPUs, maintenance windows, and the rules
// of pools.

#include <string>
#include <vector>

#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

// Ends of a sentence that tells a reason of this code, each begun by "; ", or nothing: the nodes that are closed to new
// tasks and could each hold a task of the job if they were open; the failed GPUs of open nodes that could hold more of
// its tasks with them, were they empty; the open nodes that could if its image did not matter; what planned windows
// close to it of what is free now; and the rules of pools that it may not use.
std::string closed_nodes(const state::State& state, const state::JobState& job, ReasonCode code);
std::string failed_gpus(const state::State& state, const state::JobState& job, ReasonCode code);
std::string closed_to_images(const state::State& state, const state::JobState& job, ReasonCode code);
std::string closed_by_windows(const state::State& state, const state::JobState& job, ReasonCode code);
std::string closed_pools(const state::State& state, const state::JobState& job, ReasonCode code);

// "pool serving takes only jobs of class inference, and this one is of class training": for each pool with nodes that
// is closed to the job.
std::vector<std::string> pool_rules(const state::State& state, const state::JobState& job);

// "window firmware closes node n1 from T to U, and the job might still run then: it has no time limit"
std::string maintenance_sentence(const state::State& state, const Reason& reason);

}  // namespace berth::explain

#pragma once
// Says which nodes a pending job may not use now, and why: cordons, lost contact, failed GPUs, images, maintenance
// windows and rules of pools.

#include <string>
#include <vector>

#include "model/reason.h"
#include "state/state.h"

namespace berth::explain {

// The next functions return the end of the sentence for a reason with this code, beginning with "; ", or "". Each is
// about nodes that could hold a task of the job if one obstacle were gone:
//
// - closed_nodes: nodes that are cordoned, under maintenance or out of contact;
// - failed_gpus: failed GPUs of nodes that take tasks;
// - closed_to_images: nodes that run no containers;
// - closed_by_windows: free resources that a planned maintenance window closes to the job;
// - closed_pools: pools whose rules exclude the job.
std::string closed_nodes(const state::State& state, const state::JobState& job, ReasonCode code);
std::string failed_gpus(const state::State& state, const state::JobState& job, ReasonCode code);
std::string closed_to_images(const state::State& state, const state::JobState& job, ReasonCode code);
std::string closed_by_windows(const state::State& state, const state::JobState& job, ReasonCode code);
std::string closed_pools(const state::State& state, const state::JobState& job, ReasonCode code);

// Returns a sentence for each pool that has nodes and is closed to the job: "pool serving takes only jobs of class
// inference, and this one is of class training".
std::vector<std::string> pool_rules(const state::State& state, const state::JobState& job);

// Returns the sentence for a maintenance reason: "window firmware closes node n1 from T to U, and the job might still
// run then: it has no time limit".
std::string maintenance_sentence(const state::State& state, const Reason& reason);

}  // namespace berth::explain

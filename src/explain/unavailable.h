#pragma once
// Says which nodes a pending job may not use now, and why: cordons, lost contact, failed GPUs, images, maintenance
// windows and rules of pools.

#include <string>
#include <vector>

#include "explain/words.h"
#include "model/reason.h"

namespace berth::explain {

// Returns notes on a reason with this code, for the parentheses behind its sentence. Each is about nodes that could
// hold a task of the job if one obstacle were gone:
//
// - free resources that a planned maintenance window closes to the job;
// - nodes that are cordoned, under maintenance or out of contact;
// - failed GPUs of nodes that take tasks;
// - nodes that run no containers.
std::vector<std::string> unavailable_notes(const Words& words, const state::JobState& job, ReasonCode code);

// Returns the rule that closes the pool to the job, "takes only inference jobs (this one is training)", or "".
std::string pool_rule(const Words& words, const state::JobState& job, const state::PoolState& pool);

// Returns a sentence for each pool that has nodes and is closed to the job: "pool serving takes only inference jobs
// (this one is training)".
std::vector<std::string> pool_rules(const Words& words, const state::JobState& job);

// Returns the end of a sentence, "; " and the rule of each pool that excludes the job, or "".
std::string closed_pools(const Words& words, const state::JobState& job, ReasonCode code);

// Returns the clause for a maintenance reason: "node n1 is under maintenance from T to U (window firmware), and the job
// might still run then: it has no time_limit".
std::string maintenance_text(const Words& words, const Reason& reason);

}  // namespace berth::explain

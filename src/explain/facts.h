#pragma once
// The facts about a pending job that an explanation gives beside its answer: how its queue stands, and with -v the
// numbers at each queue, what is free, its deadline, reservation and expected run time.

#include <string>
#include <vector>

#include "explain/words.h"
#include "model/reason.h"

namespace berth::explain {

// Returns how the guarantee of the job's queue stands: "fine: queue a uses 8 of its guaranteed 12 GPUs"; "" where quota
// is the reason, and for a job without GPUs that no guarantee concerns. Requires: the job is in line.
std::string quota_standing(const Words& words, const state::JobState& job, ReasonCode code);

// Returns one sentence for each fact. `state` is that of `words`; it is changed during the search and restored.
std::vector<std::string> further_facts(state::State& state, const Words& words, const state::JobState& job,
                                       const Reason& reason);

}  // namespace berth::explain

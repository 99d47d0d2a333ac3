#pragma once
// Says what a nominated job still waits for: the victims that have not left, or not scaled down.

#include <cstdint>
#include <string>
#include <vector>

#include "explain/words.h"
#include "model/reason.h"

namespace berth::explain {

// Returns the victims of the nomination that have not left yet, or not scaled down. Requires: the job is nominated.
std::vector<const state::JobState*> still_leaving(const state::State& state, const state::JobState& preemptor);

// Returns the reason of a nominated job: how many victims leave, how many only scale down, and by how many tasks.
Reason reason_of_nominated(const state::State& state, const state::JobState& preemptor);

// Returns the predicate for that reason: "starts as soon as jobs 6 and 21 have checkpointed and left".
std::string nominated_text(const Words& words, const state::JobState& preemptor);

// Returns one sentence for each victim: "job 5 (queue b) moves to n3 by 19:06:51 UTC".
std::vector<std::string> victims_by_name(const Words& words, const state::JobState& preemptor);

// Returns the predicate for a job that is asked to stop: "is moving to n3 so that job 4 fits (consolidate)".
std::string stopping_text(const Words& words, const state::JobState& job);

}  // namespace berth::explain

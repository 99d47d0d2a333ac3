#pragma once
// The answer to an operator's order to move a running job: its new places, or why there are none, in words.

#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/ids.h"
#include "model/job.h"
#include "state/state.h"

namespace berth::explain {

// Returns the places of sched::MoveTarget. Error: conflict, with the sentence of the reason and what is short. `state`
// is used as scratch paper and is as before afterwards.
Result<std::vector<TaskPlacement>> find_move_target(state::State& state, JobId job, const std::vector<NodeId>& off,
                                                    Timestamp now);

}  // namespace berth::explain

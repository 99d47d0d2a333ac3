#pragma once
// Answers the order of an operator to move a running job: the new places, or a sentence that says why there are none.

#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/ids.h"
#include "model/job.h"
#include "state/state.h"

namespace berth::explain {

// Returns the new places, as sched::MoveTarget finds them. Error kConflict: no places are free, or the job would borrow
// on them; the message gives the reason and what is short. `state` is changed during the search and restored.
Result<std::vector<TaskPlacement>> find_move_target(state::State& state, JobId job, const std::vector<NodeId>& off,
                                                    Timestamp now);

}  // namespace berth::explain

#pragma once
// Where a running job could start again that an operator moves (control/move.h): on places that are free now, beside
// what others are promised and held, on none of the nodes that it is to leave. It stays in its pool, goes to no node
// for which maintenance is planned, and keeps its standing: where it is within a guarantee it is so there. What an
// elastic gang has grown by is not kept for it.

#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/ids.h"
#include "model/job.h"
#include "state/state.h"

namespace berth::sched {

// Its places, or the reason why there are none, in words. `state` is used as scratch paper and is as before afterwards.
Result<std::vector<TaskPlacement>> find_elsewhere(state::State& state, JobId job, const std::vector<NodeId>& off,
                                                  Timestamp now);

}  // namespace berth::sched

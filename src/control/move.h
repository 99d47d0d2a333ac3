#pragma once
// An operator's order that a running job goes elsewhere. It is asked to save and leave, and the places where it starts
// again are found first and kept for it from then on, as for those that consolidation moves
// (sched/resize/consolidate.h). An order is refused where the job would lose by it: its work, unless the order says so,
// its places, or a replica that its service cannot spare. It counts against no limit of moves, and no minimum run time
// stands in its way.

#include <vector>

#include "base/result.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

// `off` are the nodes that the command names.
Result<Reply> move_job(Batch& batch, const state::JobState& job, std::vector<NodeId> off, const MoveJob& command,
                       const FindMoveTarget& move_target);

}  // namespace berth::control

#pragma once
// An operator orders a running job to move to other nodes. New places are found first and are kept for the job, as in
// consolidation (sched/resize/consolidate.h). Then the job is asked to save and to leave.
//
// The order is refused if the job cannot move: it is stopping or interactive, has exited tasks, or a node of it is out
// of contact. It is also refused if the job would lose by it: no places are free, unsaved work would be lost without
// permission, or its service cannot spare the replica. Limits on consolidations and min_runtime do not apply.

#include <vector>

#include "base/result.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

// Returns the new nodes and the deadline, or the error that refuses the order. `off` are the nodes to leave; if it is
// empty, the job leaves all its nodes. `command` gives the user and says whether work may be lost. A repeated order
// returns the places that the job already has.
Result<Reply> move_job(Batch& batch, const state::JobState& job, std::vector<NodeId> off, const MoveJob& command,
                       const FindMoveTarget& move_target);

}  // namespace berth::control

#pragma once
// Maintenance windows: from then to then nothing runs on these nodes.
//
// 1. Before the window only such jobs start there as are gone by then (sched/place/node_fit.h). Those that run there
// and are
//    not are asked to leave one grace of theirs before it begins, so that they are gone when it does; a service keeps
//    who must serve until others can.
// 2. While it lasts the nodes take no tasks. At its end they take tasks again by themselves, unless they are cordoned.
// 3. Windows overlap as they like: a node is open when none of them lasts.

#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

Result<Reply> plan_maintenance(Batch& batch, const PlanMaintenance& command);
Result<Reply> cancel_maintenance(Batch& batch, const CancelMaintenance& command);

// Windows begin and end that are due.
void reconcile_maintenance(Batch& batch);

}  // namespace berth::control

#pragma once
// Maintenance windows: times in which no task should run on the nodes of the window.
//
// 1. Before the window, a job starts on its nodes only if it ends before the window begins (sched/place/node_fit.h). A
//    running job that would not end in time is asked to leave one grace period before the window begins. Exception: a
//    replica that its service cannot spare stays until the service can.
// 2. During the window its nodes take no tasks. Afterwards they take tasks again, unless they are cordoned or in
//    another window.
// 3. Windows may overlap.

#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

Result<Reply> plan_maintenance(Batch& batch, const PlanMaintenance& command);
Result<Reply> cancel_maintenance(Batch& batch, const CancelMaintenance& command);

// Emits the begin and the end of each window that is due.
void reconcile_maintenance(Batch& batch);

}  // namespace berth::control

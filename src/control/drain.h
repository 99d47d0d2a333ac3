#pragma once
// Cordons and drains of nodes. Nothing new starts on a cordoned node. A drain also empties the node:
//
// - Jobs that save when they are asked to leave, and replicas that their service can spare, are asked to leave and
//   start elsewhere.
// - A job that does not save runs to its end, because it would lose its work. With `lose_work` it is asked to leave,
// too.
// - With `when_idle` no job is asked to leave.
// - With a deadline, a maintenance window begins then, named after the node (control/maintenance.h): what still runs is
//   asked to leave one grace before. The window is over when the node is uncordoned.
// - If the node goes away at a known time (a spot notice), all jobs are asked to leave.
//
// The reply names the jobs on the node and what each would lose.

#include "base/result.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

Result<Reply> cordon_node(Batch& batch, const CordonNode& command);

// Returns true if the job loses work when it is asked to stop: it is interactive or does not save on request. A replica
// of a service has no work to lose. Requires an attempt.
bool loses_work(const state::State& state, const state::JobState& job);

}  // namespace berth::control

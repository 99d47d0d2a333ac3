#pragma once
// reconcile emits the events that follow from the state without a decision of the scheduler. It runs after the commands
// of a batch and again after the cycle. It looks only at jobs that an event touched and at timers that are due:
//
//   all tasks are over            -> the attempt ends; the job is requeued or finished
//   a task of a gang failed       -> the other tasks are stopped
//   the job is cancelled          -> it finishes, after a stop if it runs
//   asked to stop                 -> forced once the checkpoint is acknowledged or the grace has ended
//   the time limit is reached     -> asked to stop
//   a node drains                 -> asked to stop, unless the job would lose its work (control/drain.h)
//   a node left the fleet         -> forgotten once nothing holds it
//   a maintenance window is near  -> asked to stop; a window that is due begins or ends
//   a nomination cannot be kept   -> withdrawn; the evictions for it are cancelled where possible
//   a lease of a queue change ends -> what was in force before is in force again
//   a guarantee gained room       -> borrowed charges are counted within it, in start order
//   a guarantee is not used       -> it decays, or is restored
//   too many stranded GPUs        -> the alarm is raised, or cleared
//   a service or an array         -> missing replicas or elements are submitted, old replicas are replaced

#include <vector>

#include "control/batch.h"

namespace berth::control {

void reconcile(Batch& batch);

// Asks the replica to leave a draining node, or for a maintenance window, if its service can spare it now.
void drain_replica(Batch& batch, JobId replica);

// Asks the running job to leave a draining node although it loses work by it. Returns false if it is stopping already
// or its service cannot spare it.
bool drain_with_loss(Batch& batch, JobId job);

// Cancels the evictions that were made for `preemptor`. A victim runs on only if the whole of it was asked to stop, and
// if it has neither acknowledged its checkpoint nor begun to exit.
void cancel_evictions_for(Batch& batch, JobId preemptor, const std::vector<JobId>& victims);

// Returns true if reconcile would have work at `now`.
bool needs_reconciling(const state::State& state, Timestamp now);

// Returns when reconcile has to run next because of a timer, or never().
Timestamp next_timer(const state::State& state);

}  // namespace berth::control

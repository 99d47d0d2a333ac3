#pragma once
// settle: what follows from the state by itself, without a decision of the scheduler. It is called after the commands
// of a batch and after the cycle, and looks only at jobs that something happened to and at timers that are due:
//
//   all tasks over           -> the attempt ends; the job is requeued or finished
//   one task of a gang failed -> the rest is stopped
//   cancelled                -> it finishes, or is stopped first
//   asked to stop            -> forced when it acknowledged its checkpoint or its grace is over
//   time limit reached       -> asked to stop
//   node draining            -> asked to stop
//   maintenance near         -> asked to stop; windows that are due begin and end
//   claimant gone            -> its nomination is dropped and victims that still run are let off
//   guarantee gained room    -> borrowed charges are promoted, in the order of their start
//   guarantee not used       -> it decays, or is restored
//   stranded GPUs over the alert -> the alarm is raised, or cleared
//   service, array           -> replicas and elements are made real; of an updated service, replaced

#include <vector>

#include "control/batch.h"

namespace berth::control {

void reconcile(Batch& batch);

// A replica on a node that drains is asked to leave, if its service can do without it now.
void drain_replica(Batch& batch, JobId replica);

// Victims of a claimant that no longer needs them run on, if they have neither acknowledged nor begun to leave.
void cancel_evictions_for(Batch& batch, JobId preemptor, const std::vector<JobId>& victims);

// Whether settle would have anything to look at.
bool needs_reconciling(const state::State& state, Timestamp now);

// The first time after which settle must be called again, or never.
Timestamp next_timer(const state::State& state);

}  // namespace berth::control

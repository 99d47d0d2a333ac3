#pragma once
// Keep: whether a nominated job may start at its nominated places, because they are free by now and quota still allows
// them. It is called only when the job finds no other places (sched/nomination/serve.h).

#include "model/ids.h"
#include "sched/cycle.h"
#include "state/state.h"

namespace berth::sched {

// Returns true if `victim` was asked to leave or to scale down for `preemptor` and has not done so yet.
bool leaves_for(const state::State& state, JobId victim, JobId preemptor);
// Returns true if at least one victim of the nomination has not left yet.
bool waits_for_victims(const state::State& state, const state::JobState& preemptor);

// Removes in the transaction what the victims of the nomination still hold, as if they had left.
void let_victims_leave(Cycle& cycle, JobId preemptor);

// Returns true if quota, affinity, topology and the nodes allow the job its nominated places now. Requires that its
// nomination is lifted.
bool may_take(Cycle& cycle, const state::JobState& job);

// Returns true if the job may start at its nominated places. Requires that its nomination is lifted. While its own
// victims are there, backfill reservations must be respected too. After that only other nominations can be in the way.
// Their victims still hold what they are nominated, so both must not be counted together. Two checks are enough: the
// places are free now without the other nominations, and they will be free with them when all victims have left.
bool keeps_nomination(Cycle& cycle, const state::JobState& job);

}  // namespace berth::sched

#pragma once
// Keep: whether the nominated places are free by now and quota still allows them. A nominated job starts there, and
// nowhere else, once it cannot start at better places and its victims have left.

#include "model/ids.h"
#include "sched/cycle.h"
#include "state/state.h"

namespace berth::sched {

// Returns true if `victim` was asked to stop for `preemptor` and has not left yet.
bool leaves_for(const state::State& state, JobId victim, JobId preemptor);
// Returns true if at least one victim of the nomination has not left yet.
bool waits_for_victims(const state::State& state, const state::JobState& preemptor);

// Removes from the transaction all that leaves for the preemptor, as if it had left.
void let_victims_leave(Cycle& cycle, JobId preemptor);

// Returns true if quota, affinity, topology and the nodes allow the job its nominated places now. Requires that its
// nomination is lifted.
bool may_take(Cycle& cycle, const state::JobState& job);

// Returns true if the job may start at its nominated places. Other nominations count, and so do the victims that leave
// for them; but what such victims hold is what the others are nominated. So it is enough if there is room now without
// the other nominations, and there will be room with them when all victims have left. Requires that the job's
// nomination is lifted.
bool keeps_nomination(Cycle& cycle, const state::JobState& job);

}  // namespace berth::sched

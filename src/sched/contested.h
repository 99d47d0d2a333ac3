#pragma once
// Whether somebody who waits could take a place as soon as the job has started there.

#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place.h"
#include "state/state.h"
#include "state/trial.h"

namespace berth::sched {

// Jobs that wait, that quota admits, that one of the nodes could hold if it were empty and that could stop the job
// there: of its own queue by priority or level, of others because it would borrow what they are guaranteed. Neither who
// will never fit nor claimants: they have places. Looks at the first job of each lane.
bool contested(state::Trial& trial, state::State& state, const state::JobState& job,
               const std::vector<TaskPlacement>& placements, Timestamp now, PlaceWork& work);

}  // namespace berth::sched

#pragma once
// Whether a promised claimant may start at another place, or keeps to its promise: nobody starts only to be stopped.
//
// A start is contested where somebody who waits could stop the job as soon as it has started: in its own queue by
// priority or level, from others because it would borrow what they are guaranteed. That is asked of the search for
// victims itself, on a trial on which the job runs there and its victims have been let off, as they would be. Who
// would find places beside the job contests it, too, if the rules alone would let him stop it: others are asked before
// him who may take those. Of each lane its first is asked; neither who will never fit nor claimants, who have places.

#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place.h"
#include "state/state.h"
#include "state/trial.h"

namespace berth::sched {

// Of the claimant, whose nomination is lifted, at the placements that it found. The trial is as before.
bool contested(state::Trial& trial, state::State& state, const state::JobState& claimant,
               const std::vector<TaskPlacement>& placements, Timestamp now, PlaceWork& work);

}  // namespace berth::sched

#pragma once
// The reason that a gang finds no places, with its code and its numbers. It distinguishes what can never be from what
// only waiting helps, and names the one rule without which there would be places: affinity, NUMA policy, maintenance.
// That costs several searches, so it is worked out only where the reason is asked for.

#include "model/reason.h"
#include "sched/place/gang_search.h"
#include "state/state.h"

namespace berth::sched {

// Returns the reason. Requires that place_all has just refused the gang so; `models` are those of the gang.
Reason reason_of(Gang& gang, const state::JobState& job, ModelMask models, const PlaceRefusal& refusal);

}  // namespace berth::sched

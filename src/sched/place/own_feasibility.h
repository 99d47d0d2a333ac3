#pragma once
// Jobs whose tasks may not share a place: exclusive ones, each task of which has a node to itself, and those whose
// required anti-affinity means the job itself, each task of which is in another domain. Where such a job, or one of its
// groups, has to be within one domain of a level too, there may be too few such places in every one of them.

#include <optional>

#include "model/reason.h"
#include "state/state.h"

namespace berth::sched {

// Never: even if all nodes were empty too few places could each hold one of its tasks. Nothing where that is not
// certain, also where the tasks of a group need more than that.
std::optional<Reason> too_few_places(const state::State& state, const state::JobState& job);

}  // namespace berth::sched

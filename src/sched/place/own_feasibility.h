#pragma once
// Own feasibility: jobs whose tasks may not share a place. Each task of an exclusive job needs a node of its own. If
// required anti-affinity means the job itself, each task needs a domain of its own. If the job or a group must also be
// within one domain of some level, every such domain may have too few places.

#include <optional>

#include "model/reason.h"
#include "state/state.h"

namespace berth::sched {

// Returns kNeverFits if too few places could each hold one task, even if all nodes were empty and whole. Returns
// nothing if that is not certain, for example when there are enough places but the tasks need more.
std::optional<Reason> too_few_places(const state::State& state, const state::JobState& job);

}  // namespace berth::sched

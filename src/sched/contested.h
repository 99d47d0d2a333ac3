#pragma once
// Whether somebody who waits could take a place as soon as the job has started there.

#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "state/state.h"

namespace berth::sched {

// The waiting jobs that quota admits, that one of the nodes could hold if it were empty and that could stop the job
// there: of its own queue by priority, of others because it would borrow what they are guaranteed. Claimants are left
// out: they have places. Looks at the first job of each lane; whether it would fit is not tried.
bool contested(const state::State& state, const state::JobState& job, const std::vector<TaskPlacement>& placements,
               Timestamp now);

}  // namespace berth::sched

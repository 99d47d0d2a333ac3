#pragma once
// Finds out whether a job borrows at its places though it seemed to be within a guarantee. What a job counts depends on
// the GPU models, whole nodes and burst pools that it gets, and is known only with its places.

#include <optional>
#include <vector>

#include "model/job.h"
#include "model/resources.h"
#include "state/state.h"

namespace berth::sched {

// Returns what the job counts at `placements` if it would borrow there, though it would be within by its least amounts
// `least`; else nothing. Why: started as if it were within, it would pass a job that is within, which would then
// reclaim from it.
std::optional<Amounts> borrows_after_all(const state::State& state, const state::JobState& job, const Amounts& least,
                                         const std::vector<TaskPlacement>& placements);

// Returns true if the job would borrow at `placements` only because some of them are in a burst pool: by `counts` alone
// it would be within a guarantee.
bool borrows_by_burst(const state::State& state, const state::JobState& job, const Amounts& counts,
                      const std::vector<TaskPlacement>& placements);

// Returns true if a nominated job would borrow at `placements` but not at its nominated places. There it could be
// reclaimed at once, and would then preempt again.
bool borrows_unlike_nominated(const state::State& state, const state::JobState& preemptor,
                              const std::vector<TaskPlacement>& placements);

}  // namespace berth::sched

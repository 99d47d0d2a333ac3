#pragma once
// Whether a start borrows where it seemed to be within a guarantee: which GPU models, whole nodes and burst pools a job
// gets decides what it counts, and that is known only with its places.

#include <optional>
#include <vector>

#include "model/job.h"
#include "model/resources.h"
#include "state/state.h"

namespace berth::sched {

// Returns what the job counts at `placements`, if it would borrow there and not by the amounts `least`; else nothing. A
// job that is within goes before it, or would reclaim from it as soon as it has started.
std::optional<Amounts> borrows_after_all(const state::State& state, const state::JobState& job, const Amounts& least,
                                         const std::vector<TaskPlacement>& placements);

// Returns true if the job would borrow at `placements` only because some of them are in a burst pool: by `counts` alone
// it would be within a guarantee.
bool borrows_by_burst(const state::State& state, const state::JobState& job, const Amounts& counts,
                      const std::vector<TaskPlacement>& placements);

// Returns true if a nominated job would borrow at `placements` and not at its nominated places: there it could be
// reclaimed at once, and would preempt again.
bool borrows_unlike_nominated(const state::State& state, const state::JobState& preemptor,
                              const std::vector<TaskPlacement>& placements);

}  // namespace berth::sched

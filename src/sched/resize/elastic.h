#pragma once
// Elastic gangs: start and scale-up. A gang starts with min_count tasks of each group, in one charge. Tasks above that,
// which join later or at once if there is room, are a charge of their own, so they can be taken back without ending the
// gang (sched/preempt).
//
// Scale-up is the last step of a cycle: all pending jobs have been evaluated before, and nominated or reserved places
// are not used.

#include <optional>
#include <set>
#include <vector>

#include "model/job.h"
#include "model/plan.h"
#include "model/reason.h"
#include "sched/place/place.h"
#include "state/transaction.h"

namespace berth::sched {

// Splits placements: `start` has the first min_count of each group, in order, and `growth` has the rest.
struct StartAndGrowth {
  std::vector<TaskPlacement> start;
  std::vector<TaskPlacement> growth;
};
StartAndGrowth split_growth(const JobSpec& spec, std::vector<TaskPlacement> placements);

// Returns how many tasks each group of the running gang lacks to its full count; empty if it lacks none.
std::vector<std::int32_t> missing_tasks(const state::JobState& gang);
// Returns true if the gang goes on running and all its nodes stay: it is not cancelled, no task has exited, and no node
// is draining or lost.
bool may_grow(const state::State& state, const state::JobState& gang);
// When the gang may scale up next: one resize interval after its size last changed.
Timestamp grows_next(const state::State& state, const state::JobState& gang);

// Returns places for more tasks of a running gang, as far as nodes and quota allow. If quota refuses all, `refusal`
// says why. If a max of one GPU model refuses, other models are tried.
struct Growth {
  std::vector<TaskPlacement> placements;
  std::optional<Reason> refusal;
};
Growth find_growth(const state::State& state, const state::JobState& gang, SearchStats& work);

// Scales up the running gangs below their full counts: gangs within their guarantees first, then by priority and age.
// Each scales up at most once in a resize interval. Gangs in `leaving`, which are asked to stop or to scale down, do
// not. The decisions go into the plan and the transaction.
struct GrowStep {
  state::State& state;
  state::Transaction& transaction;
  Timestamp now;
  const std::set<JobId>& leaving;
  SearchStats& work;
};
// Returns when the next of the other gangs may scale up.
Timestamp grow_gangs(const GrowStep& step, Plan& plan);

}  // namespace berth::sched

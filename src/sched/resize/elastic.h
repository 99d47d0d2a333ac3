#pragma once
// Growth of elastic gangs. A gang starts with the least counts of its groups in one charge; what joins later, or at
// once because there is room, is a charge of its own, so that it can be given back without the gang (sched/preempt).
//
// Growth comes last in a cycle: everybody who waits has been asked before, and what is promised or held stays so.

#include <optional>
#include <set>
#include <vector>

#include "model/job.h"
#include "model/plan.h"
#include "model/reason.h"
#include "sched/place/place.h"
#include "state/transaction.h"

namespace berth::sched {

// The first least counts of each group, in order; and what goes beyond them.
struct StartAndGrowth {
  std::vector<TaskPlacement> start;
  std::vector<TaskPlacement> growth;
};
StartAndGrowth split_growth(const JobSpec& spec, std::vector<TaskPlacement> placements);

// What each group of a running gang still lacks to its count; empty if it lacks nothing.
std::vector<std::int32_t> missing_tasks(const state::JobState& gang);
// Whether the gang is to go on as it is, on nodes that stay.
bool may_grow(const state::State& state, const state::JobState& gang);
// From when on it may: a resize interval after its size last changed.
Timestamp grows_next(const state::State& state, const state::JobState& gang);

// Places for more tasks of a running gang, as far as there is room and quota for them; where there are none, what quota
// refused, if it was quota. Where a ceiling of one GPU model refuses them, the other models are tried.
struct Growth {
  std::vector<TaskPlacement> placements;
  std::optional<Reason> refusal;
};
Growth find_growth(const state::State& state, const state::JobState& gang, SearchStats& work);

// Lets the running gangs below their counts grow into what is free, those within their guarantees first, then by
// priority and age; each at most once in a resize interval, and none of the `leaving`, who are asked to give back or to
// stop. Decisions go into the plan, and onto the trial.
struct GrowStep {
  state::State& state;
  state::Transaction& transaction;
  Timestamp now;
  const std::set<JobId>& leaving;
  SearchStats& work;
};
void grow_gangs(const GrowStep& step, Plan& plan);

}  // namespace berth::sched

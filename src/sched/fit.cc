#include "sched/fit.h"

#include "sched/admit.h"
#include "sched/backfill.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Trial;

namespace {

bool why_is_of_quota(ReasonCode code) {
  return code == ReasonCode::kQueueMax || code == ReasonCode::kQueueLending || code == ReasonCode::kUserLimit;
}

}  // namespace

std::optional<std::vector<TaskPlacement>> fit_now(const State& state, const JobState& job, PlaceWork& work,
                                                  Reason& why) {
  const Admission admission = admit(state, job);
  if (admission.models == 0) {
    why = admission.reason;
    return std::nullopt;
  }
  const auto allows = [&](const JobState& one, std::vector<TaskPlacement>& placements) {
    return trim_until(one.spec, placements, [&](const std::vector<TaskPlacement>& rest) {
      const auto reason = refuses(state, one, rest);
      if (reason) why = *reason;
      return !reason;
    });
  };
  const auto places_of = [&](const JobState& one) -> std::optional<std::vector<TaskPlacement>> {
    auto placements = place(state, one, admission.models, work, why);
    if (!placements || allows(one, *placements)) return placements;
    if (why.code != ReasonCode::kQueueLending || !state.has_burst_pools()) return std::nullopt;
    // What is kept back is of no matter in burst pools.
    const Reason lending = why;
    placements = try_place(state, one, admission.models, Pools::kBurst, work);
    if (placements && allows(one, *placements)) return placements;
    why = lending;
    return std::nullopt;
  };
  auto placements = places_of(job);
  if (placements || !why_is_of_quota(why.code)) return placements;
  // What is left of an elastic gang when the last ones are dropped may count more than its least part by itself would:
  // nodes differ.
  JobState least = job;
  for (TaskGroup& group : least.spec.groups) group.count = group.least();
  if (least.spec == job.spec) return std::nullopt;
  Reason again;
  std::swap(why, again);
  placements = places_of(least);
  if (!placements) why = again;
  return placements;
}

Reason behind_hold(const State& state, JobId owner) {
  Reason why;
  why.code = ReasonCode::kBehindHold;
  why.job = owner;
  why.limit = state.job(owner)->start_hold->start.ms;
  return why;
}

std::optional<std::vector<TaskPlacement>> fit_beside_holds(Trial& trial, State& state, const JobState& job,
                                                           Timestamp now, PlaceWork& work, Reason& why) {
  auto placements = fit_now(state, job, work, why);
  if (!placements || state.start_holds().empty()) return placements;
  const std::vector<JobId> owners = not_passed(state, job, now);
  const JobId delayed = first_delayed(state, job.queue, owners, *placements);
  if (!delayed.valid()) return placements;
  const Trial::Mark mark = trial.mark();
  for (const JobId owner : owners) trial.set_aside(owner, state.job(owner)->start_hold->placements);
  Reason beside;
  placements = fit_now(state, job, work, beside);
  trial.rollback_to(mark);
  if (!placements) why = behind_hold(state, delayed);
  return placements;
}

}  // namespace berth::sched

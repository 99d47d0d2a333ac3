#include "sched/fit.h"

#include "sched/admit.h"
#include "sched/backfill.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Trial;

std::optional<std::vector<TaskPlacement>> fit_now(const State& state, const JobState& job, PlaceWork& work,
                                                  Reason& why) {
  const Admission admission = admit(state, job);
  if (admission.models == 0) {
    why = admission.reason;
    return std::nullopt;
  }
  auto placements = place(state, job, admission.models, work, why);
  if (!placements) return std::nullopt;
  const bool allowed = trim_until(job.spec, *placements, [&](const std::vector<TaskPlacement>& rest) {
    const auto reason = refuses(state, job, rest);
    if (reason) why = *reason;
    return !reason;
  });
  return allowed ? std::move(placements) : std::nullopt;
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

#include "sched/nomination/serve.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sched/evaluate.h"
#include "sched/nomination/keep.h"
#include "sched/nomination/preemption_conflicts.h"
#include "sched/nomination/withdraw.h"
#include "sched/queue/borrowing.h"
#include "sched/start.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

namespace {

// A job that was moved starts at its new places and nowhere else. Its nomination is withdrawn if it may not run there
// any more, or if a pending job would preempt it there at once.
void serve_moved(Cycle& cycle, const JobState& job) {
  if (!may_take(cycle, job)) return withdraw(cycle, job, "its move ended on places where it may no longer run");
  const auto& placements = job.nomination->placements;
  if (!who_could_stop(cycle.conflict_search(), job, placements).empty())
    return withdraw(cycle, job, "a pending job would preempt it immediately");
  cycle.withdrawn.insert(job.id);
  start(cycle, job.id, placements);
  requeue_parked(cycle.state, job);
}

std::vector<JobId> nominated_by_priority(const State& state) {
  std::vector<JobId> ids(state.nominated().begin(), state.nominated().end());
  std::sort(ids.begin(), ids.end(), [&](JobId a, JobId b) {
    const JobState& left = *state.job(a);
    const JobState& right = *state.job(b);
    return std::tuple(-left.priority, left.submitted, left.id) < std::tuple(-right.priority, right.submitted, right.id);
  });
  return ids;
}

// Requires that the nomination is lifted; `mark` is from before that. Rolls back to `mark` if the job goes on waiting
// for its victims.
void serve_one(Cycle& cycle, const JobState& job, Transaction::Mark mark) {
  if (job.nomination->has_moved()) return serve_moved(cycle, job);
  if (moves_are_futile(cycle, job)) return withdraw(cycle, job, "a pending job would preempt it immediately");
  const StartQuestion question{cycle.state, job, cycle.now, cycle.work};
  auto placements = try_start(cycle.transaction, question.only_whether()).placements;
  if (placements && borrows_unlike_nominated(cycle.state, job, *placements)) placements.reset();
  StartConflict conflict;
  if (placements) conflict = find_start_conflict(cycle.conflict_search(), job, *placements);
  if (conflict.has_conflict) placements.reset();
  if (conflict.withdraws_for.valid()) return withdraw_for_conflict(cycle, job, {conflict.withdraws_for});
  if (!placements) {
    const NominationConflict then = conflict_of_nomination(cycle, job);
    if (then.withdraws_for.valid() || then.futile_because_of.valid()) return withdraw_for_conflict(cycle, job, then);
  }
  // If the job starts elsewhere, the evictions of its remaining victims are cancelled. Whether other jobs evict these
  // victims is decided in the next cycle, when the cancellation is in the log.
  const bool victims_left = waits_for_victims(cycle.state, job);
  cycle.cancels_evictions = cycle.cancels_evictions || (placements && victims_left);
  if (!placements && keeps_nomination(cycle, job)) placements = job.nomination->placements;
  if (placements) {
    cycle.withdrawn.insert(job.id);
    start(cycle, job.id, std::move(*placements));
    return requeue_parked(cycle.state, job);
  }
  if (!victims_left) return withdraw(cycle, job, "it does not fit although its victims have left");
  cycle.transaction.rollback_to(mark);
  Reason why;
  why.code = ReasonCode::kWaitsForVictims;
  cycle.plan.refused.emplace_back(job.id, why);
}

}  // namespace

void serve_nominations(Cycle& cycle) {
  for (const JobId id : nominated_by_priority(cycle.state)) {
    const Transaction::Mark mark = cycle.transaction.mark();
    ++cycle.plan.scheduling_attempts;
    cycle.transaction.lift_nomination(id);
    serve_one(cycle, *cycle.state.job(id), mark);
  }
}

}  // namespace berth::sched

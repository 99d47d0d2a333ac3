#include "sched/nomination/withdraw.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "sched/nomination/keep.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

void withdraw(Cycle& cycle, const JobState& job, const char* why) {
  cycle.withdrawn.insert(job.id);
  cycle.plan.decisions.emplace_back(DropNominationDecision{job.id, why});
  requeue_parked(cycle.state, job);
}

void withdraw_for_conflict(Cycle& cycle, const JobState& job, const NominationConflict& conflict) {
  cycle.withdrawn.insert(job.id);
  cycle.cancels_evictions = true;
  const bool to_one = conflict.withdraws_for.valid();
  const std::string other =
      "job " + std::to_string((to_one ? conflict.withdraws_for : conflict.futile_because_of).value());
  cycle.plan.decisions.emplace_back(DropNominationDecision{
      job.id, to_one ? other + " needs the same victims or quota, and would preempt it immediately"
                     : other + " would reclaim its places immediately"});
  cancel_evictions_for(cycle.transaction, cycle.state, job);
}

void requeue_parked(State& state, const JobState& preemptor) {
  if (planted(Bug::kParkedNotRequeued)) return;
  state::WaitIndex& waits = state.waits();
  for (const TaskPlacement& placement : preemptor.nomination->placements) {
    waits.mark_freed(placement.node);
    for (const NodeId node : state.kept_apart_with(placement.node)) waits.mark_freed(node);
  }
  for (QueueId q = preemptor.queue; q.valid(); q = state.queue(q).parent) waits.mark_freed(q);
  waits.mark_changed();
}

bool moves_are_futile(Cycle& cycle, const JobState& job) {
  if (job.nomination->cause != StopCause::kConsolidate) return false;
  const Transaction::Mark mark = cycle.transaction.mark();
  let_victims_leave(cycle, job.id);
  const std::set<JobId> leaving(job.nomination->victims.begin(), job.nomination->victims.end());
  const bool could =
      could_be_stopped({cycle.transaction, cycle.state, cycle.now, leaving, cycle.work, cycle.reevaluate_at}, job,
                       job.nomination->placements);
  cycle.transaction.rollback_to(mark);
  return could;
}

NominationConflict conflict_of_nomination(Cycle& cycle, const JobState& job) {
  const bool by_moves = job.nomination->cause == StopCause::kConsolidate;
  if (by_moves || !nobody_has_left_for(cycle.state, job)) return {};
  std::vector<JobId> victims;
  std::vector<std::uint32_t> keeps;
  for (const JobId id : job.nomination->victims) {
    if (!leaves_for(cycle.state, id, job.id)) continue;
    victims.push_back(id);
    keeps.push_back(cycle.state.job(id)->attempt->stop->keep);
  }
  const Transaction::Mark mark = cycle.transaction.mark();
  let_victims_leave(cycle, job.id);
  const bool may = may_take(cycle, job);
  cycle.transaction.rollback_to(mark);
  if (!may) return {};
  return find_nomination_conflict(cycle.conflict_search(), job, {job.nomination->placements, job.nomination->within},
                                  {victims, keeps});
}

}  // namespace berth::sched

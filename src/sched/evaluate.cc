#include "sched/evaluate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sched/nomination/nominate.h"
#include "sched/nomination/preemption_conflicts.h"
#include "sched/preempt/preempt.h"
#include "sched/queue/admit.h"
#include "sched/queue/borrowing.h"
#include "sched/queue/quota.h"
#include "sched/resize/elastic.h"
#include "sched/start.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

namespace {

// All stages, unless an equal job was refused its places in this cycle, by the probe or since.
StartAnswer find_start(Cycle& cycle, const JobState& job, const Amounts& least) {
  const Admission admission = admit(cycle.state, job, least);
  if (admission.models == 0) {
    const ReasonCode code = admission.reason.code;
    const bool by_budget = code == ReasonCode::kBudget || code == ReasonCode::kGrant;
    cycle.refused_to_borrow = cycle.refused_to_borrow || (by_budget && borrowing_is_stopped(cycle.state, job.queue));
    return {std::nullopt, admission.reason};
  }
  // A job with affinity may find places near one that starts in this cycle.
  const bool alike = job.spec.groups.size() == 1 && job.spec.affinity.empty();
  const Verdicts::Id question = cycle.verdicts.id_of(job, admission.models);
  if (const auto& refused = cycle.cache.refused(question); alike && refused) return {std::nullopt, *refused};
  const Reason* known = cycle.cache.refused_at_first(question, alike);
  StartAnswer answer = known != nullptr
                           ? StartAnswer{std::nullopt, *known}
                           : try_start(cycle.transaction, {cycle.state, job, cycle.now, cycle.work, &admission});
  if (!answer && alike && is_placement_reason(answer.why.code)) cycle.cache.refuse(question, answer.why);
  cycle.refused_at_places = cycle.refused_at_places || (!answer && is_quota_reason(answer.why.code));
  return answer;
}

// Returns true if a deferred preemptor would preempt the job at these places as soon as it starts.
bool blocks_deferred(Cycle& cycle, const JobState& job, const std::vector<TaskPlacement>& placements) {
  return std::any_of(cycle.deferred.begin(), cycle.deferred.end(), [&](JobId preemptor) {
    const JobState& waiting = *cycle.state.job(preemptor);
    return could_stop(cycle.conflict_search(), waiting, job, placements);
  });
}

}  // namespace

void start(Cycle& cycle, JobId id, std::vector<TaskPlacement> placements) {
  StartAndGrowth split = split_growth(cycle.state.job(id)->spec, std::move(placements));
  cycle.transaction.place(id, split.start);
  cycle.decided.insert(id);
  const JobState& job = *cycle.state.job(id);
  cycle.starting.push_back(expected_end(cycle.state, job, split.start, cycle.now));
  cycle.plan.decisions.emplace_back(StartDecision{id, std::move(split.start)});
  if (split.growth.empty()) return;
  cycle.transaction.grow(id, split.growth);
  cycle.plan.decisions.emplace_back(GrowDecision{id, std::move(split.growth)});
}

void evaluate(Cycle& cycle, Order& order, JobId id) {
  ++cycle.plan.scheduling_attempts;
  const std::size_t eq_class = order.eq_class_of_last();
  if (const Reason* closed = cycle.cache.closed(cycle.state, eq_class)) {
    cycle.plan.refused.emplace_back(id, *closed);
    order.refuse();
    return cycle.cache.shut(eq_class);
  }
  const JobState& job = *cycle.state.job(id);
  const Amounts& least = *cycle.cache.asked()[eq_class].least;
  auto [placements, why] = find_start(cycle, job, least);
  if (placements) {
    if (const auto counts = borrows_after_all(cycle.state, job, order.counts_of_last(), *placements)) {
      return order.reconsider_as(*counts);
    }
    if (!order.asked_as_borrowing() && borrows_by_burst(cycle.state, job, order.counts_of_last(), *placements)) {
      return order.reconsider_as_borrowing();
    }
    const auto reclaims = [&](JobId owner) {
      return could_stop(cycle.conflict_search(), *cycle.state.job(owner), job, *placements);
    };
    if (order.defers_to_owner(reclaims)) return;
    if (blocks_deferred(cycle, job, *placements)) {
      cycle.reevaluate_at = cycle.now;
      order.refuse();
      return cycle.cache.shut(eq_class);
    }
    start(cycle, id, std::move(*placements));
    return cycle.cache.take();
  }
  // For a job that may not pass a reservation the reserved places are taken: it searches victims as if nothing were
  // free.
  const bool delays = why.code == ReasonCode::kWouldDelayReservation;
  const bool claims =
      !is_never(why.code) && !cycle.cache.eviction_is_futile(eq_class) && may_evict_others(cycle.state, job, least);
  if (claims && nominate(cycle, id)) return cycle.cache.take();
  if (claims) cycle.cache.note_futile_eviction(eq_class);
  // Places that were free when the cycle began went to jobs of this cycle, which cannot be evicted before they run. In
  // the next cycle the job may reclaim from those that borrow.
  if (claims && !cycle.plan.decisions.empty()) cycle.reevaluate_at = cycle.now;
  cycle.plan.refused.emplace_back(id, std::move(why));
  if (delays) {
    order.refuse_as_long();
  } else {
    order.refuse();
    cycle.cache.shut(eq_class);
  }
}

void refuse_rest(Cycle& cycle, const Order& order) {
  if (!cycle.cache.refuses_any()) return;
  for (const JobId id : order.rest()) {
    const JobState& job = *cycle.state.job(id);
    if (cycle.decided.contains(id)) continue;
    if (const auto why = cycle.cache.refused(state::EquivalenceKey{job.queue, job.shape}))
      cycle.plan.refused.emplace_back(id, *why);
  }
}

}  // namespace berth::sched

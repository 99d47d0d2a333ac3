#include "sched/nomination/nominate.h"

#include <utility>

#include "sched/nomination/preemption_conflicts.h"
#include "sched/preempt/preempt.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

bool nominate(Cycle& cycle, JobId id, bool at_any_rate) {
  const std::size_t budget = eviction_budget(cycle.state, cycle.now, cycle.evicted);
  VictimSearch search{cycle.state, cycle.now, cycle.victims, budget};
  search.stopped = &cycle.stopped_below;
  EvictionFound found = find_eviction(cycle.transaction, search, *cycle.state.job(id), cycle.work);
  auto& decision = found.decision;
  const NominationConflict& conflict = found.conflict;
  cycle.reevaluate_by(found.reevaluate_at);
  if (!decision || conflict.futile_because_of.valid()) return false;
  if (conflict.withdraws_for.valid() && !at_any_rate) {
    cycle.deferred.push_back(id);
    return false;
  }
  cycle.victims.insert(decision->victims.begin(), decision->victims.end());
  for (std::size_t v = 0; v < decision->victims.size(); ++v) {
    if (decision->keeps[v] > 0) continue;
    ++cycle.evicted;
    count_stopped(cycle.state, cycle.state.job(decision->victims[v])->queue, cycle.stopped_below);
  }
  cycle.decided.insert(id);
  cycle.transaction.nominate(id, decision->placements, decision->within);
  cycle.plan.decisions.emplace_back(std::move(*decision));
  return true;
}

void evict_after_all(Cycle& cycle) {
  if (cycle.deferred.empty()) return;
  if (!cycle.plan.decisions.empty()) {
    cycle.reevaluate_at = cycle.now;
    return;
  }
  for (const JobId id : cycle.deferred) {
    if (nominate(cycle, id, true)) return;
  }
}

}  // namespace berth::sched

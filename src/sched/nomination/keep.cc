#include "sched/nomination/keep.h"

#include <algorithm>
#include <map>
#include <vector>

#include "sched/place/affinity.h"
#include "sched/place/gang.h"
#include "sched/place/node_fit.h"
#include "sched/place/topology.h"
#include "sched/queue/admit.h"
#include "sched/start.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

namespace {

// Returns true if the nodes have room for all the placements together, and the job may still use these nodes. Since the
// nomination a configuration may have closed a pool, or a node may have rejoined with other taints and labels.
bool nodes_have_room(Cycle& cycle, const JobState& job, const std::vector<TaskPlacement>& placements) {
  std::map<NodeId, NodeDelta> taken;
  std::vector<TaskRequirements> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g)
    asks.push_back(task_requirements(cycle.state, job, g, kAllModels));
  for (const TaskPlacement& placement : placements) {
    const state::NodeState& node = cycle.state.node(placement.node);
    NodeDelta& here = taken[placement.node];
    here.add(placement);
    const TaskRequirements& ask = asks[placement.group];
    const bool allowed = ask.classes[cycle.state.node_index().class_of(node.id).index()];
    if (!allowed || !has_labels(ask.group, node.spec)) return false;
    if (closing(ask, node)) return false;
    if (!node.takes_tasks() || node.available_cpu_milli() < here.cpu_milli) return false;
    if (node.available_memory_mib() < here.memory_mib || short_countable(node, here)) return false;
    for (const std::uint8_t gpu : placement.gpus) {
      if (node.gpus[gpu].available_milli() < here.milli[gpu]) return false;
      if ((node.gpus[gpu].unavailable_slices() & here.slices[gpu]) != 0) return false;
      const bool share = placement.gpu_milli < kMilli && placement.slices == 0;
      if (share && !node.gpus[gpu].takes_shares_of(cycle.state.queue(job.queue).trust_domain)) return false;
    }
  }
  return true;
}

// Returns true if may_take holds beside the backfill reservations that the job may not pass. While its victims are
// still there, idle resources beside them may be reserved for another job.
bool may_take_beside_reservations(Cycle& cycle, const JobState& job) {
  const std::vector<JobId> owners = not_passed(cycle.state, job, cycle.now);
  return beside_reservations(cycle.transaction, cycle.state, owners, [&] { return may_take(cycle, job); });
}

}  // namespace

bool leaves_for(const State& state, JobId id, JobId preemptor) {
  const JobState* victim = state.job(id);
  return victim != nullptr && victim->attempt && victim->attempt->stop && victim->attempt->stop->preemptor == preemptor;
}

bool waits_for_victims(const State& state, const JobState& preemptor) {
  const auto& victims = preemptor.nomination->victims;
  return std::any_of(victims.begin(), victims.end(), [&](JobId id) { return leaves_for(state, id, preemptor.id); });
}

void let_victims_leave(Cycle& cycle, JobId preemptor) {
  for (const JobId id : cycle.state.job(preemptor)->nomination->victims) {
    if (!leaves_for(cycle.state, id, preemptor)) continue;
    const std::uint32_t keep = cycle.state.job(id)->attempt->stop->keep;
    if (keep > 0)
      cycle.transaction.shrink(id, keep);
    else
      cycle.transaction.remove(id);
  }
}

bool may_take(Cycle& cycle, const JobState& job) {
  const auto& placements = job.nomination->placements;
  const auto refusal = refuses(cycle.state, job, placements);
  // Siblings may lend more once the victims have left. Until then a lending limit does not end the nomination.
  const bool kept_back = refusal && refusal->code == ReasonCode::kQuotaLentOut;
  if (refusal && (!kept_back || waits_for_victims(cycle.state, job))) return false;
  if (!AffinityFilter(cycle.state, job).allow(placements)) return false;
  const Gang gang(cycle.state, job, {}, cycle.work);
  if (!in_required_domains(cycle.state, placements, job_levels(gang)))
    return false;  // a configuration has other levels
  return nodes_have_room(cycle, job, placements);
}

bool keeps_nomination(Cycle& cycle, const JobState& job) {
  if (waits_for_victims(cycle.state, job)) return may_take_beside_reservations(cycle, job);
  if (may_take(cycle, job)) return true;
  std::vector<JobId> others(cycle.state.nominated().begin(), cycle.state.nominated().end());
  std::erase_if(others, [&](JobId id) { return id == job.id || cycle.withdrawn.contains(id); });
  if (others.empty()) return false;
  const Transaction::Mark mark = cycle.transaction.mark();
  for (const JobId id : others) cycle.transaction.lift_nomination(id);
  const bool now = may_take(cycle, job);
  cycle.transaction.rollback_to(mark);
  if (!now) return false;
  for (const JobId id : others) let_victims_leave(cycle, id);
  const bool then = may_take(cycle, job);
  cycle.transaction.rollback_to(mark);
  return then;
}

}  // namespace berth::sched

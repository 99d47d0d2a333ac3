#include "sim/world/growing_cycle.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sched/admit.h"
#include "sched/cycle.h"
#include "sched/node_fit.h"

namespace berth::sim {

namespace {

using state::JobState;
using state::State;

// A place for one more task of the group, on the first node that has room.
std::optional<TaskPlacement> place_one(const State& state, const JobState& job, std::size_t group) {
  const sched::TaskAsk ask = sched::task_ask(state, job, group, sched::kAllModels);
  for (const state::NodeState& node : state.nodes()) {
    const bool allowed = node.takes_tasks() && ask.classes[state.node_index().class_of(node.id).index()];
    if (!allowed || !sched::has_labels(ask.group, node.spec)) continue;
    auto placement = sched::try_node(ask, node, {});
    if (placement && !sched::refuses(state, job, std::span(&*placement, 1))) return placement;
  }
  return std::nullopt;
}

std::optional<GrowDecision> grow_one(const State& state) {
  for (const JobId id : state.running()) {
    const JobState& job = *state.job(id);
    if (job.phase != JobPhase::kRunning || !job.spec.topology.required.empty()) continue;
    std::vector<std::int32_t> counts(job.spec.groups.size());
    for (const auto& task : job.attempt->tasks) ++counts[task.placement.group];
    for (std::size_t g = 0; g < counts.size(); ++g) {
      if (counts[g] >= job.spec.groups[g].count) continue;
      if (auto placement = place_one(state, job, g)) return GrowDecision{id, {std::move(*placement)}};
    }
  }
  return std::nullopt;
}

}  // namespace

Plan growing_cycle(State& state, Timestamp now) {
  Plan plan = sched::run_cycle(state, now);
  if (!plan.decisions.empty()) return plan;
  if (auto grow = grow_one(state)) plan.decisions.emplace_back(std::move(*grow));
  return plan;
}

}  // namespace berth::sim

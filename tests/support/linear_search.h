#pragma once
// Reference placement for tests: it scans all nodes for every task. Placement with the node index must give the same
// result.

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sched/place/node_fit.h"
#include "sched/place/place.h"
#include "sched/queue/quota.h"

namespace berth::sched {

// Tries every task on every node; the best fit of all nodes wins. It shares with the product only the judgement of one
// task on one node. Test fleets are so small that the product scores all their nodes, too.
struct LinearSearch {
  const state::State& state;
  const state::JobState& job;
  ModelMask models;
  NodeScore score;
  Pools pools;
  std::map<NodeId, NodeDelta> taken;
  std::vector<TaskPlacement> placements;
  bool by_images = false;

  bool add(std::size_t group) {
    TaskRequirements ask = task_requirements(state, job, group, models, pools);
    if (by_images && !ask.group.image.empty()) ask.image_on = state.images().holders(ask.group.image);
    const bool scored = score == NodeScore::kFragmentation && !ask.exclusive;
    const state::PlacementLoss loss(state.fragmentation(), state.request_of(ask.group.request));
    std::optional<std::pair<Fit, TaskPlacement>> best;
    for (const state::NodeState& node : state.nodes()) {
      const bool known = ask.classes[state.node_index().class_of(node.id).index()];
      if (!node.takes_tasks() || !known || !suits(ask, node)) continue;
      auto placement = try_node(ask, node, taken[node.id]);
      if (!placement) continue;
      Fit fit = fit_of(ask, node, taken[node.id]);
      if (scored) {
        const LeastLoss least = *least_loss(loss, ask, node, taken[node.id]);
        fit.loss = least.milli;
        if (ask.group.request.is_share() && !ask.mig) placement->gpus = {least.gpu};
      }
      if (!best || fit < best->first) best.emplace(fit, *placement);
    }
    if (!best) return false;
    taken[best->second.node].add(best->second);
    placements.push_back(best->second);
    return true;
  }
};

inline std::optional<std::vector<TaskPlacement>> place_slow(const std::vector<std::size_t>& order,
                                                            const state::State& state, const state::JobState& job,
                                                            ModelMask models, NodeScore score, Pools pools,
                                                            bool by_images = false) {
  LinearSearch search{state, job, models, score, pools, {}, {}, by_images};
  for (const std::size_t g : order) {
    for (std::int32_t i = 0; i < job.spec.groups[g].least(); ++i) {
      if (!search.add(g)) return std::nullopt;
    }
  }
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    for (std::int32_t i = group.least(); i < group.count && search.add(g); ++i) {
    }
  }
  std::stable_sort(search.placements.begin(), search.placements.end(), [](const auto& a, const auto& b) {
    return std::pair(a.group, a.node) < std::pair(b.group, b.node);
  });
  return search.placements;
}

// Tries the groups in their stated order, then with the largest tasks first, then with the largest last.
inline std::optional<std::vector<TaskPlacement>> place_slow(const state::State& state, const state::JobState& job,
                                                            ModelMask models, NodeScore score, Pools pools,
                                                            bool by_images = false) {
  std::vector<std::size_t> order;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) order.push_back(g);
  if (auto placements = place_slow(order, state, job, models, score, pools, by_images)) return placements;
  const auto size = [&](std::size_t g) {
    const TaskRequest& request = job.spec.groups[g].request;
    return std::tuple(request.total_gpu_milli(), request.cpu_milli, request.memory_mib);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  if (auto placements = place_slow(order, state, job, models, score, pools, by_images)) return placements;
  std::reverse(order.begin(), order.end());
  return place_slow(order, state, job, models, score, pools, by_images);
}

// Uses the configured score if the gang fits with it. A gang of several groups falls back to best fit; if it does not
// fit by best fit, it does not fit.
inline std::optional<std::vector<TaskPlacement>> place_slow(const state::State& state, const state::JobState& job,
                                                            ModelMask models, Pools pools) {
  const NodeScore score = state.config().scheduling.score;
  if (job.spec.groups.size() == 1) return place_slow(state, job, models, score, pools);
  auto fitting = place_slow(state, job, models, NodeScore::kBestFit, pools);
  if (!fitting) return std::nullopt;
  auto scored = place_slow(state, job, models, score, pools);
  return scored ? scored : fitting;
}

// A job within its guarantees is tried outside burst pools first, a borrowing job in burst pools first. If it does not
// fit there, all pools are tried.
inline std::optional<std::vector<TaskPlacement>> place_slow(const state::State& state, const state::JobState& job,
                                                            ModelMask models) {
  const Pools first = within_guarantee(state, job) ? Pools::kOrdinary : Pools::kBurst;
  auto placements = state.has_burst_pools() ? place_slow(state, job, models, first) : std::nullopt;
  return placements ? placements : place_slow(state, job, models, Pools::kAny);
}

// As place_slow with the configured score, but prefers nodes that have the image.
inline std::optional<std::vector<TaskPlacement>> place_slow_by_images(const state::State& state,
                                                                      const state::JobState& job, ModelMask models) {
  const NodeScore score = state.config().scheduling.score;
  const Pools first = within_guarantee(state, job) ? Pools::kOrdinary : Pools::kBurst;
  auto placements = state.has_burst_pools() ? place_slow(state, job, models, score, first, true) : std::nullopt;
  return placements ? placements : place_slow(state, job, models, score, Pools::kAny, true);
}

}  // namespace berth::sched

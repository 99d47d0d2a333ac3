#include "sched/place.h"

#include <algorithm>
#include <array>
#include <map>

namespace berth::sched {

namespace {

using state::GpuSlot;
using state::JobState;
using state::NodeState;
using state::State;

// What this placement has taken of a node so far, on top of the state.
struct Taken {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::array<std::int32_t, kMaxGpusPerNode> milli{};
  std::int32_t tasks = 0;
};

struct Search {
  const State& state;
  const JobState& job;
  ModelMask models;
  PlaceWork& work;
  std::map<NodeId, Taken> taken;
};

ModelMask allowed_models(const State& state, const TaskRequest& request) {
  if (request.gpu_models.empty()) return kAllModels;
  ModelMask mask = 0;
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const auto& names = request.gpu_models;
    if (std::find(names.begin(), names.end(), state.gpu_models()[m].name) != names.end()) mask |= ModelMask{1} << m;
  }
  return mask;
}

bool tolerates(const TaskGroup& group, const NodeSpec& node) {
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    return std::find(group.tolerations.begin(), group.tolerations.end(), taint.key) != group.tolerations.end();
  });
}

bool has_labels(const TaskGroup& group, const NodeSpec& node) {
  return std::all_of(group.node_selector.begin(), group.node_selector.end(), [&](const auto& wanted) {
    return std::find(node.labels.begin(), node.labels.end(), wanted) != node.labels.end();
  });
}

bool allowed_node(const State& state, const JobState& job, const TaskGroup& group, const NodeState& node) {
  if (!group.pool.empty() && group.pool != node.spec.pool) return false;
  return may_use_pool(state, job.queue, node.pool) && has_labels(group, node.spec) && tolerates(group, node.spec);
}

bool usable_gpu(const GpuSlot& gpu, ModelMask models) { return gpu.healthy && (models >> gpu.model.index() & 1U) != 0; }

// Best fit for a share: the fullest GPU that still has room and is shared within the same trust domain; else an idle
// one.
std::optional<std::uint8_t> pick_share(const Search& search, const NodeState& node, const Taken& taken,
                                       ModelMask models, std::int32_t milli) {
  const TrustDomainId domain = search.state.queue(search.job.queue).trust_domain;
  std::optional<std::uint8_t> best;
  std::int32_t best_left = 0;
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
    const GpuSlot& gpu = node.gpus[g];
    const std::int32_t available = gpu.available_milli() - taken.milli[g];
    if (!usable_gpu(gpu, models) || available < milli) continue;
    if (gpu.sharers > 0 && gpu.share_domain != domain) continue;
    if (!best || available - milli < best_left) {
      best = g;
      best_left = available - milli;
    }
  }
  return best;
}

// The first idle GPUs of one model.
std::vector<std::uint8_t> pick_whole(const NodeState& node, const Taken& taken, ModelMask models, std::int32_t count) {
  for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
    std::vector<std::uint8_t> picked;
    for (std::uint8_t g = 0; g < node.gpus.size() && picked.size() < static_cast<std::size_t>(count); ++g) {
      const GpuSlot& gpu = node.gpus[g];
      if (gpu.model.index() == m && usable_gpu(gpu, models) && gpu.available_milli() - taken.milli[g] == kMilli)
        picked.push_back(g);
    }
    if (picked.size() == static_cast<std::size_t>(count)) return picked;
  }
  return {};
}

bool untouched(const NodeState& node) {
  return node.tasks.empty() && node.available_cpu_milli() == node.spec.cpu_milli &&
         node.available_memory_mib() == node.spec.memory_mib &&
         std::all_of(node.gpus.begin(), node.gpus.end(),
                     [](const GpuSlot& gpu) { return !gpu.healthy || gpu.available_milli() == kMilli; });
}

// One task of the group on the node, or nothing.
std::optional<TaskPlacement> try_node(const Search& search, const TaskGroup& group, std::uint16_t index,
                                      const NodeState& node, const Taken& taken) {
  const TaskRequest& request = group.request;
  if (node.available_cpu_milli() - taken.cpu_milli < request.cpu_milli) return std::nullopt;
  if (node.available_memory_mib() - taken.memory_mib < request.memory_mib) return std::nullopt;
  if (search.job.spec.exclusive && (taken.tasks > 0 || !untouched(node))) return std::nullopt;
  TaskPlacement placement;
  placement.node = node.id;
  placement.group = index;
  placement.cpu_milli = request.cpu_milli;
  placement.memory_mib = request.memory_mib;
  const ModelMask models = search.models & allowed_models(search.state, request);
  if (request.is_share()) {
    const auto gpu = pick_share(search, node, taken, models, request.gpu_milli);
    if (!gpu) return std::nullopt;
    placement.gpus = {*gpu};
    placement.gpu_milli = request.gpu_milli;
  } else if (request.gpus > 0) {
    placement.gpus = pick_whole(node, taken, models, request.gpus);
    if (placement.gpus.empty()) return std::nullopt;
  }
  if (search.job.spec.exclusive) {
    placement.cpu_milli = node.spec.cpu_milli;
    placement.memory_mib = node.spec.memory_mib;
    placement.gpus.clear();
    placement.gpu_milli = kMilli;
    for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
      if (node.gpus[g].healthy) placement.gpus.push_back(g);
    }
  }
  return placement;
}

void take(Taken& taken, const TaskPlacement& placement) {
  taken.cpu_milli += placement.cpu_milli;
  taken.memory_mib += placement.memory_mib;
  for (const std::uint8_t gpu : placement.gpus) taken.milli[gpu] += placement.gpu_milli;
  ++taken.tasks;
}

// What would stay free on the node: GPUs first, then CPU. Less is a better fit; spread jobs prefer nodes without their
// own.
struct Fit {
  std::int32_t own_tasks = 0;
  std::int64_t gpu_milli_left = 0;
  std::int64_t cpu_left = 0;
  auto operator<=>(const Fit&) const = default;
};

Fit fit_of(const Search& search, const NodeState& node, const Taken& taken, const TaskPlacement& placement) {
  Fit fit;
  fit.own_tasks = search.job.spec.spread ? taken.tasks : 0;
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g)
    fit.gpu_milli_left += node.gpus[g].available_milli() - taken.milli[g];
  fit.gpu_milli_left -= static_cast<std::int64_t>(placement.gpus.size()) * placement.gpu_milli;
  fit.cpu_left = node.available_cpu_milli() - taken.cpu_milli - placement.cpu_milli;
  return fit;
}

std::optional<TaskPlacement> best_node(Search& search, const TaskGroup& group, std::uint16_t index) {
  static const Taken kNothing;
  std::optional<TaskPlacement> best;
  Fit best_fit;
  for (const NodeState& node : search.state.nodes()) {
    if (!node.takes_tasks() || !allowed_node(search.state, search.job, group, node)) continue;
    const auto found = search.taken.find(node.id);
    const Taken& taken = found == search.taken.end() ? kNothing : found->second;
    auto placement = try_node(search, group, index, node, taken);
    if (!placement) continue;
    ++search.work.nodes_scored;
    const Fit fit = fit_of(search, node, taken, *placement);
    if (!best || fit < best_fit) {
      best = std::move(placement);
      best_fit = fit;
    }
  }
  return best;
}

// Whether the fleet, were it empty, could hold what the group asks at least.
bool fits_empty_fleet(const State& state, const JobState& job, const TaskGroup& group) {
  std::int64_t slots = 0;
  for (const NodeState& node : state.nodes()) {
    if (node.status == NodeStatus::kLost || !could_hold(state, job, group, node)) continue;
    std::int64_t here = kUnlimited;
    const TaskRequest& request = group.request;
    if (request.cpu_milli > 0) here = std::min(here, node.spec.cpu_milli / request.cpu_milli);
    if (request.memory_mib > 0) here = std::min(here, node.spec.memory_mib / request.memory_mib);
    if (request.gpus > 0) {
      const ModelMask models = allowed_models(state, request);
      const auto usable = std::count_if(node.gpus.begin(), node.gpus.end(),
                                        [&](const GpuSlot& gpu) { return usable_gpu(gpu, models); });
      const std::int64_t per_gpu = request.is_share() ? kMilli / request.gpu_milli : 1;
      here = std::min(here, usable * per_gpu / request.gpus);
    }
    slots += job.spec.exclusive ? std::min<std::int64_t>(here, 1) : here;
    if (slots >= group.least()) return true;
  }
  return false;
}

// Distinguishes "never", "busy" and "enough in total, but in the wrong places".
Reason reason_for(const Search& search, std::size_t index) {
  const TaskGroup& group = search.job.spec.groups[index];
  Reason reason;
  reason.group = static_cast<std::int32_t>(index);
  reason.asked = group.least() * group.request.total_gpu_milli();
  const ModelMask models = allowed_models(search.state, group.request);
  std::int64_t allowed_nodes = 0;
  for (const NodeState& node : search.state.nodes()) {
    if (!allowed_node(search.state, search.job, group, node)) continue;
    ++allowed_nodes;
    if (!node.takes_tasks()) continue;
    for (const GpuSlot& gpu : node.gpus) {
      if (usable_gpu(gpu, models)) reason.limit += gpu.available_milli();
    }
  }
  if (!fits_empty_fleet(search.state, search.job, group)) {
    reason.code =
        allowed_nodes == 0 && !search.state.nodes().empty() ? ReasonCode::kPoolClosed : ReasonCode::kNeverFits;
  } else {
    reason.code = reason.limit >= reason.asked && reason.asked > 0 ? ReasonCode::kFragmented : ReasonCode::kGpusBusy;
  }
  return reason;
}

bool add_tasks(Search& search, std::vector<TaskPlacement>& placements, std::size_t index, std::int32_t count) {
  const TaskGroup& group = search.job.spec.groups[index];
  for (std::int32_t i = 0; i < count; ++i) {
    auto placement = best_node(search, group, static_cast<std::uint16_t>(index));
    if (!placement) return false;
    take(search.taken[placement->node], *placement);
    placements.push_back(std::move(*placement));
  }
  return true;
}

}  // namespace

bool may_use_pool(const State& state, QueueId queue, std::uint32_t pool) {
  const auto& queues = state.pools()[pool].queues;
  return queues.empty() ||
         std::any_of(queues.begin(), queues.end(), [&](QueueId top) { return state.is_below(queue, top); });
}

bool could_hold(const State& state, const JobState& job, const TaskGroup& group, const NodeState& node) {
  const TaskRequest& request = group.request;
  if (!allowed_node(state, job, group, node)) return false;
  if (request.cpu_milli > node.spec.cpu_milli || request.memory_mib > node.spec.memory_mib) return false;
  const ModelMask models = allowed_models(state, request);
  return std::count_if(node.gpus.begin(), node.gpus.end(),
                       [&](const GpuSlot& gpu) { return usable_gpu(gpu, models); }) >= request.gpus;
}

std::optional<std::vector<TaskPlacement>> place(const State& state, const JobState& job, ModelMask models,
                                                PlaceWork& work, Reason& why) {
  Search search{state, job, models, work, {}};
  std::vector<TaskPlacement> placements;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    if (!add_tasks(search, placements, g, job.spec.groups[g].least())) {
      why = reason_for(search, g);
      return std::nullopt;
    }
  }
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    for (std::int32_t i = group.least(); i < group.count; ++i) {
      if (!add_tasks(search, placements, g, 1)) break;
    }
  }
  std::stable_sort(placements.begin(), placements.end(),
                   [](const auto& a, const auto& b) { return a.group < b.group; });
  return placements;
}

}  // namespace berth::sched

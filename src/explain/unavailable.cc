#include "explain/unavailable.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "explain/text_list.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "model/sharing.h"
#include "sched/place/place.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::NodeState;
using state::State;

namespace {

// The name of the maintenance window that closes the node from `from` to `to`.
std::string window_of(const State& state, NodeId node, Timestamp from, Timestamp to) {
  const auto found = std::find_if(state.maintenance().begin(), state.maintenance().end(), [&](const auto& one) {
    const state::Maintenance& window = one.second;
    return window.from == from && window.to == to &&
           std::find(window.nodes.begin(), window.nodes.end(), node) != window.nodes.end();
  });
  return found == state.maintenance().end() ? std::string() : found->first;
}

// A maintenance window that closes a node to a job, and the amount that is free there.
struct KeptOut {
  state::ClosedSpan span;
  std::int64_t amount = 0;
};

std::int64_t free_gpu_milli(const NodeState& node, const TaskRequirements& ask) {
  std::int64_t milli = 0;
  for (const state::GpuSlot& gpu : node.gpus) {
    if ((ask.models >> gpu.model.index() & 1U) != 0) milli += gpu.available_milli();
  }
  return milli;
}

// Returns the window and amount for the first group that could use the node but for it. A group without GPUs does not
// count towards GPUs.
std::optional<KeptOut> kept_out(const State& state, const NodeState& node, const std::vector<TaskRequirements>& asks,
                                std::size_t dim) {
  for (const TaskRequirements& ask : asks) {
    const auto span = closing(ask, node);
    if (!span || !node.takes_tasks() || !could_hold(state, ask, node)) continue;
    if (dim == kDimGpu && ask.group.request.gpus == 0) continue;
    const std::int64_t amount = dim == kDimGpu ? free_gpu_milli(node, ask) : node.available_cpu_milli();
    if (amount > 0) return KeptOut{*span, amount};
  }
  return std::nullopt;
}

// Returns how many GPUs that the group may use have failed on the node; 0 if the node would hold no more of its tasks
// with them.
std::int64_t missed_gpus(const State& state, const TaskRequirements& ask, const NodeState& node) {
  const auto failed = std::count_if(node.gpus.begin(), node.gpus.end(), [&](const state::GpuSlot& gpu) {
    return !gpu.healthy && (ask.models >> gpu.model.index() & 1U) != 0;
  });
  if (failed == 0 || !ask.classes[state.node_index().class_of(node.id).index()] || !has_labels(ask.group, node.spec))
    return 0;
  const state::NodeShape& shape = state.node_index().shape_of(node.id);
  return slots_when_empty(ask, healed(shape)) > slots_when_empty(ask, shape) ? failed : 0;
}

using Notes = std::vector<std::string>;

// Returns ", fenced" if a GPU of the node is. Why it is names processes and jobs of others: only who sees all is told.
std::string fence_of(const Words& words, const NodeState& node) {
  for (const Gpu& gpu : node.spec.gpus) {
    if (gpu.fenced) return words.viewer().sees_everything() ? ", fenced: " + gpu.fault : ", fenced";
  }
  return "";
}

void add_failed_gpus(const Words& words, const JobState& job, ReasonCode code, Notes& notes) {
  const State& state = words.state();
  if (!(is_room_reason(code) || code == ReasonCode::kNeverFits || code == ReasonCode::kNuma)) return;
  std::vector<TaskRequirements> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_requirements(state, job, g, kAllModels));
  std::int64_t gpus = 0;
  std::vector<NodeId> nodes;
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks()) continue;
    std::int64_t here = 0;
    for (const TaskRequirements& ask : asks) here = std::max(here, missed_gpus(state, ask, node));
    if (here == 0) continue;
    gpus += here;
    nodes.push_back(node.id);
  }
  if (nodes.empty()) return;
  notes.push_back(counted(gpus, "GPU") + " failed on " +
                  (nodes.size() == 1 ? state.node(nodes.front()).spec.name + fence_of(words, state.node(nodes.front()))
                                     : std::to_string(nodes.size()) + " nodes"));
}

// GPUs, CPUs and memory that others use, on nodes that could hold a task of the job.
void add_foreign_use(const State& state, const JobState& job, ReasonCode code, Notes& notes) {
  if (!is_room_reason(code) && code != ReasonCode::kNuma) return;
  std::vector<TaskRequirements> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_requirements(state, job, g, kAllModels));
  const bool of_gpus =
      std::any_of(asks.begin(), asks.end(), [](const TaskRequirements& a) { return a.group.request.gpus > 0; });
  std::int64_t amount = 0;
  std::vector<NodeId> nodes;
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks() || std::none_of(asks.begin(), asks.end(),
                                            [&](const TaskRequirements& ask) { return could_hold(state, ask, node); }))
      continue;
    const std::int64_t gpus =
        kMilli * std::count_if(node.gpus.begin(), node.gpus.end(), [](const auto& gpu) { return gpu.foreign; });
    const std::int64_t here = of_gpus ? gpus : node.foreign.cpu_milli;
    if (here == 0) continue;
    amount += here;
    nodes.push_back(node.id);
  }
  if (nodes.empty()) return;
  const std::size_t dim = of_gpus ? kDimGpu : kDimCpu;
  notes.push_back(amount_text(dim, amount) + (of_gpus ? " GPU" : " CPU") + (amount == kMilli ? "" : "s") +
                  " used by others on " +
                  (nodes.size() == 1 ? state.node(nodes.front()).spec.name : std::to_string(nodes.size()) + " nodes"));
}

void add_nodes_without_containers(const State& state, const JobState& job, ReasonCode code, Notes& notes) {
  if (!(is_room_reason(code) || code == ReasonCode::kNoEligibleNode || code == ReasonCode::kNeverFits ||
        code == ReasonCode::kNuma))
    return;
  std::vector<TaskRequirements> asks;
  std::vector<TaskRequirements> relaxed;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    if (job.spec.groups[g].image.empty()) continue;
    asks.push_back(task_requirements(state, job, g, kAllModels));
    relaxed.push_back(asks.back());
    set_image_aside(state, job, relaxed.back());
  }
  const auto without = std::count_if(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    const auto could = [&](const TaskRequirements& ask) { return could_hold(state, ask, node); };
    return node.takes_tasks() && std::none_of(asks.begin(), asks.end(), could) &&
           std::any_of(relaxed.begin(), relaxed.end(), could);
  });
  if (without == 0) return;
  notes.push_back(counted(without, "more node") + (without == 1 ? " runs" : " run") + " no containers for its image");
}

void add_closed_nodes(const State& state, const JobState& job, ReasonCode code, Notes& notes) {
  const bool of_places = is_room_reason(code) || code == ReasonCode::kNoEligibleNode ||
                         code == ReasonCode::kNeverFits || code == ReasonCode::kNuma;
  std::int64_t cordoned = 0;
  std::int64_t lost = 0;
  std::int64_t maintained = 0;
  for (const NodeState& node : state.nodes()) {
    if (!of_places || node.takes_tasks()) continue;
    for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
      if (!could_hold(state, job, g, node)) continue;
      ++(node.cordoned || node.draining ? cordoned : node.status == NodeStatus::kReady ? maintained : lost);
      break;
    }
  }
  const auto add = [&](std::int64_t count, const std::string& what) {
    if (count > 0) notes.push_back(counted(count, "eligible node") + " " + what);
  };
  add(cordoned, "cordoned");
  add(maintained, "under maintenance");
  add(lost, "out of contact");
}

void add_closed_by_windows(const State& state, const JobState& job, ReasonCode code, Notes& notes) {
  if (!(is_room_reason(code) || code == ReasonCode::kMaintenance) || state.maintenance().empty()) return;
  std::vector<TaskRequirements> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_requirements(state, job, g, kAllModels));
  const bool of_gpus =
      std::any_of(asks.begin(), asks.end(), [](const TaskRequirements& a) { return a.group.request.gpus > 0; });
  const std::size_t dim = of_gpus ? kDimGpu : kDimCpu;
  struct Closed {
    std::int64_t nodes = 0;
    std::int64_t amount = 0;
  };
  std::map<std::string, Closed> windows;
  for (const NodeState& node : state.nodes()) {
    const auto kept = kept_out(state, node, asks, dim);
    if (!kept) continue;
    Closed& closed = windows[window_of(state, node.id, kept->span.from, kept->span.to)];
    ++closed.nodes;
    closed.amount += kept->amount;
  }
  const std::string what = of_gpus ? "GPU" : "CPU";
  for (const auto& [name, closed] : windows) {
    notes.push_back(amount_text(dim, closed.amount) + " free " + what + (closed.amount == kMilli ? "" : "s") + " on " +
                    counted(closed.nodes, "node") + " closed by maintenance window " + name);
  }
}

}  // namespace

std::vector<std::string> unavailable_notes(const Words& words, const JobState& job, ReasonCode code) {
  const State& state = words.state();
  Notes notes;
  add_closed_by_windows(state, job, code, notes);
  add_closed_nodes(state, job, code, notes);
  add_failed_gpus(words, job, code, notes);
  add_foreign_use(state, job, code, notes);
  add_nodes_without_containers(state, job, code, notes);
  return notes;
}

std::string pool_rule(const Words& words, const JobState& job, const state::PoolState& pool) {
  const State& state = words.state();
  if (!pool.admits(job.spec.job_class)) {
    const std::string classes = listed(pool.classes, [](JobClass one) { return std::string(name_of(one)); });
    return "takes only " + classes + " jobs (this one is " + std::string(name_of(job.spec.job_class)) + ")";
  }
  for (const TaskGroup& group : job.spec.groups) {
    const auto level = level_of(job.spec, group);
    if (!level || pool.admits(*level)) continue;
    const std::string levels = listed(pool.gpu_levels, [](GpuLevel one) { return std::string(name_of(one)); });
    return std::string("gives GPUs only at level") + (pool.gpu_levels.size() == 1 ? " " : "s ") + levels +
           " (this job asks for level " + std::string(name_of(*level)) + ")";
  }
  const auto inside = [&](QueueId top) { return state.is_below(job.queue, top); };
  if (pool.queues.empty() || std::any_of(pool.queues.begin(), pool.queues.end(), inside)) return {};
  const auto known = [&](QueueId queue) { return words.viewer().knows(state, queue); };
  if (!std::all_of(pool.queues.begin(), pool.queues.end(), known)) return "takes only jobs of other queues";
  return std::string("takes only jobs of ") + (pool.queues.size() == 1 ? "queue " : "queues ") +
         listed(pool.queues, [&](QueueId queue) { return state.queue(queue).path; });
}

std::vector<std::string> pool_rules(const Words& words, const JobState& job) {
  std::set<std::uint32_t> with_nodes;
  for (const state::NodeState& node : words.state().nodes()) with_nodes.insert(node.pool);
  std::vector<std::string> rules;
  for (const std::uint32_t index : with_nodes) {
    const state::PoolState& pool = words.state().pools()[index];
    const std::string rule = pool_rule(words, job, pool);
    if (!rule.empty()) rules.push_back("pool " + pool.name + " " + rule);
  }
  return rules;
}

std::string closed_pools(const Words& words, const JobState& job, ReasonCode code) {
  if (code != ReasonCode::kNeverFits) return {};
  std::string text;
  for (const std::string& rule : pool_rules(words, job)) text += "; " + rule;
  return text;
}

std::string maintenance_text(const Words& words, const Reason& reason) {
  const State& state = words.state();
  const std::string node = "node " + state.node(reason.node).spec.name + " is under maintenance ";
  const std::string window = " (window " + window_of(state, reason.node, {reason.limit}, {reason.used}) + ")";
  const std::string until = words.time({reason.used});
  if (reason.limit <= state.asked_at().ms) return node + "until " + until + window;
  return node + "from " + words.time({reason.limit}) + " to " + until + window +
         ", and the job might still run then: it " +
         (reason.asked == 0 ? std::string("has no time_limit")
                            : "may run for " + document::duration_text(reason.asked));
}

}  // namespace berth::explain

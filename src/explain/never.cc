#include "explain/never.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "explain/shortage.h"
#include "explain/why.h"
#include "sched/place/node_fit.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::NodeShape;
using state::NodeState;
using state::State;

namespace {

bool may_use(const State& state, const TaskRequirements& ask, const NodeState& node) {
  return ask.classes[state.node_index().shape_of(node.id).node_class.index()] && has_labels(ask.group, node.spec);
}

// The most that an empty and whole eligible node has for one group, of each resource by itself, and how many of its
// tasks have room on all of them.
struct Most {
  std::int64_t gpus = 0;  // of one model
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t slots = 0;
  bool closed = false;     // nodes that take no tasks now count towards `slots`
  std::int64_t cut = 0;    // GPUs cut into MIG instances, if the group requests none
  std::int64_t uncut = 0;  // GPUs that are not cut, if it requests MIG instances
};

Most most_of(const State& state, const TaskRequirements& ask) {
  Most most;
  for (const NodeState& node : state.nodes()) {
    if (!may_use(state, ask, node)) continue;
    const NodeShape shape = healed(state.node_index().shape_of(node.id));
    most.cpu_milli = std::max(most.cpu_milli, shape.cpu_milli);
    most.memory_mib = std::max(most.memory_mib, shape.memory_mib);
    const auto slots = std::min<std::int64_t>(slots_when_empty(ask, shape), ask.group.count);
    most.slots += slots;
    most.closed = most.closed || (slots > 0 && !node.takes_tasks());
    for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
      const state::GpuModelState& model = state.gpu_models()[m];
      if ((ask.models >> m & 1U) != 0)
        most.gpus = std::max<std::int64_t>(most.gpus, shape.gpus[m]);
      else if (may_be_of(ask.group.request, model))
        (model.mig != nullptr ? most.cut : most.uncut) += shape.gpus[m];
    }
  }
  return most;
}

// "a task asks for 8 GPUs, and no node that it may use has more than 4"
std::string too_much(const std::string& task, std::size_t dim, std::int64_t asked, std::int64_t most,
                     const std::string& kind = {}) {
  return task + " asks for " + counted(dim, asked) + kind + ", and no node that it may use has " +
         (most == 0 ? "any" : "more than " + amount_text(dim, most));
}

std::string kind_of_gpus(const TaskRequest& request) {
  std::string models;
  for (const std::string& name : request.gpu_models) models += (models.empty() ? "" : " or ") + name;
  return models.empty() ? "" : " (" + models + ")";
}

// `task`: "a task", "a task of group actors".
std::string lacks_of_group(const State& state, const TaskRequirements& ask, const std::string& task) {
  const TaskRequest& request = ask.group.request;
  const Most most = most_of(state, ask);
  if (request.gpus > most.gpus) {
    const bool wants_cut = !request.mig_profile.empty();
    const std::string text =
        wants_cut ? task + " asks for 1 x " + request.mig_profile +
                        ", and no node that it may use has a GPU cut into such instances"
                  : too_much(task, kDimGpu, request.total_gpu_milli(), most.gpus * kMilli, kind_of_gpus(request));
    const std::int64_t others = wants_cut ? most.uncut : most.cut;
    if (others == 0) return text;
    return text + " (" + counted(kDimGpu, others * kMilli) + (wants_cut ? " not cut)" : " cut into MIG instances)");
  }
  if (request.cpu_milli > most.cpu_milli) return too_much(task, kDimCpu, request.cpu_milli, most.cpu_milli);
  if (request.memory_mib > most.memory_mib) return too_much(task, kDimMemory, request.memory_mib, most.memory_mib);
  for (const auto& [name, amount] : request.countables) {
    std::int64_t has = 0;
    for (const NodeState& node : state.nodes()) {
      if (may_use(state, ask, node)) has = std::max(has, amount_in(node.spec.countables, name));
    }
    if (amount <= has) continue;
    return task + " asks for " + std::to_string(amount) + " " + name + ", and no node that it may use has " +
           (has == 0 ? "any" : "more than " + std::to_string(has));
  }
  if (most.slots == 0) return "no node that it may use has all that " + task + " asks for at once";
  const std::int64_t least = ask.group.least();
  if (most.slots >= least) return {};
  const std::string of_tasks = task == "a task" ? " tasks" : " tasks" + task.substr(std::string("a task").size());
  return "all nodes that it may use" + std::string(most.closed ? ", those that take no tasks now included," : "") +
         " have room for only " + std::to_string(most.slots) + " of its " + std::to_string(least) + of_tasks;
}

// What all groups need, and what the nodes have that one of them may use.
std::string lacks_of_all(const State& state, const std::vector<TaskRequirements>& asks) {
  Amounts asked;
  for (const TaskRequirements& ask : asks) {
    const TaskRequest& request = ask.group.request;
    asked[kDimGpu] += ask.group.least() * request.total_gpu_milli();
    asked[kDimCpu] += ask.group.least() * request.cpu_milli;
    asked[kDimMemory] += ask.group.least() * request.memory_mib;
  }
  Amounts there;
  for (const NodeState& node : state.nodes()) {
    ModelMask models = 0;
    bool may = false;
    for (const TaskRequirements& ask : asks) {
      if (!may_use(state, ask, node)) continue;
      models |= ask.models;
      may = true;
    }
    if (!may) continue;
    const NodeShape shape = healed(state.node_index().shape_of(node.id));
    there[kDimCpu] += shape.cpu_milli;
    there[kDimMemory] += shape.memory_mib;
    for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
      if ((models >> m & 1U) != 0) there[kDimGpu] += shape.gpus[m] * kMilli;
    }
  }
  for (const std::size_t dim : {kDimGpu, kDimCpu, kDimMemory}) {
    if (there[dim] >= asked[dim]) continue;
    return "its groups ask for " + counted(dim, asked[dim]) + ", and all nodes that it may use have " +
           amount_text(dim, there[dim]);
  }
  return {};
}

}  // namespace

std::string what_the_fleet_lacks(const State& state, const JobState& job, const Reason& reason) {
  const bool of_levels = reason.domain.valid() || reason.node.valid();
  const bool of_room = reason.rule == PlaceRule::kJob || reason.rule == PlaceRule::kGroup;
  if (reason.code != ReasonCode::kNeverFits || of_levels || !of_room || state.nodes().empty()) return {};
  std::string lacks;
  if (job.spec.groups.size() == 1 || reason.rule == PlaceRule::kGroup) {
    const auto group = static_cast<std::size_t>(reason.group);
    if (job.spec.groups.size() == 1 && !reason.wish.empty()) return {};  // the job must be within a domain
    const std::string task = job.spec.groups.size() == 1 ? "a task" : "a task of " + reason.wish;
    lacks = lacks_of_group(state, task_requirements(state, job, group, kAllModels), task);
  } else {
    std::vector<TaskRequirements> asks;
    for (std::size_t g = 0; g < job.spec.groups.size(); ++g)
      asks.push_back(task_requirements(state, job, g, kAllModels));
    lacks = lacks_of_all(state, asks);
    const bool room_alone = reason.wish.empty() && job.spec.affinity.empty() && !job.spec.exclusive;
    if (lacks.empty() && room_alone) lacks = "each of its groups would have room alone, but not all of them at once";
  }
  return lacks;
}

}  // namespace berth::explain

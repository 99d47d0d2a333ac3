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
  return node.status != NodeStatus::kLost && ask.classes[state.node_index().shape_of(node.id).node_class.index()] &&
         has_labels(ask.group, node.spec);
}

// What an empty node has for one group at most, of each by itself, and for how many tasks all of them have room.
struct Most {
  std::int64_t gpus = 0;  // of one model
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t slots = 0;
  bool closed = false;     // some of these tasks only on nodes that take none now
  std::int64_t cut = 0;    // GPUs that are cut, of nodes and models that it may use, where it asks none such
  std::int64_t uncut = 0;  // GPUs that are not, where it asks such
};

Most most_of(const State& state, const TaskRequirements& ask) {
  Most most;
  for (const NodeState& node : state.nodes()) {
    if (!may_use(state, ask, node)) continue;
    const NodeShape& shape = state.node_index().shape_of(node.id);
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

// "a task asks 8 GPUs, and no node that it may use has more than 4"
std::string too_much(std::size_t dim, std::int64_t asked, std::int64_t most, const std::string& kind = {}) {
  return "a task asks " + counted(dim, asked) + kind + ", and no node that it may use has " +
         (most == 0 ? "any" : "more than " + amount_text(dim, most));
}

std::string kind_of_gpus(const TaskRequest& request) {
  if (!request.mig_profile.empty()) return " (profile " + request.mig_profile + ")";
  std::string models;
  for (const std::string& name : request.gpu_models) models += (models.empty() ? "" : " or ") + name;
  return models.empty() ? "" : " (" + models + ")";
}

std::string lacks_of_group(const State& state, const TaskRequirements& ask) {
  const TaskRequest& request = ask.group.request;
  const Most most = most_of(state, ask);
  if (request.gpus > most.gpus) {
    std::string text = too_much(kDimGpu, request.total_gpu_milli(), most.gpus * kMilli, kind_of_gpus(request));
    const bool wants_cut = !request.mig_profile.empty();
    const std::int64_t others = wants_cut ? most.uncut : most.cut;
    if (others == 0) return text;
    return text + "; " + counted(kDimGpu, others * kMilli) + (others == 1 ? " there is" : " there are") +
           (wants_cut ? " not cut into instances" : " cut into MIG instances");
  }
  if (request.cpu_milli > most.cpu_milli) return too_much(kDimCpu, request.cpu_milli, most.cpu_milli);
  if (request.memory_mib > most.memory_mib) return too_much(kDimMemory, request.memory_mib, most.memory_mib);
  if (most.slots == 0) return "no node that it may use has all that a task asks at once";
  const std::int64_t least = ask.group.least();
  if (most.slots >= least) return {};
  return "of " + std::to_string(least) + " tasks no more than " + std::to_string(most.slots) + " would have room" +
         (most.closed ? ", also on nodes that take none now" : "");
}

// What all groups ask, and what there is on nodes that one of them may use.
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
    const NodeShape& shape = state.node_index().shape_of(node.id);
    there[kDimCpu] += shape.cpu_milli;
    there[kDimMemory] += shape.memory_mib;
    for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
      if ((models >> m & 1U) != 0) there[kDimGpu] += shape.gpus[m] * kMilli;
    }
  }
  for (const std::size_t dim : {kDimGpu, kDimCpu, kDimMemory}) {
    if (there[dim] >= asked[dim]) continue;
    return "its groups ask " + counted(dim, asked[dim]) + ", and there " + (is_one(dim, there[dim]) ? "is " : "are ") +
           amount_text(dim, there[dim]) + " that it may use";
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
    if (job.spec.groups.size() == 1 && !reason.wish.empty()) return {};  // it has to be within a domain
    lacks = lacks_of_group(state, task_requirements(state, job, group, kAllModels));
  } else {
    std::vector<TaskRequirements> asks;
    for (std::size_t g = 0; g < job.spec.groups.size(); ++g)
      asks.push_back(task_requirements(state, job, g, kAllModels));
    lacks = lacks_of_all(state, asks);
    const bool room_alone = reason.wish.empty() && job.spec.affinity.empty() && !job.spec.exclusive;
    if (lacks.empty() && room_alone)
      lacks = "each of its groups would have room by itself, but not all of them at once";
  }
  return lacks.empty() ? lacks : ": " + lacks;
}

}  // namespace berth::explain

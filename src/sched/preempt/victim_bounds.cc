#include "sched/preempt/victim_bounds.h"

#include <algorithm>

#include "base/planted.h"
#include "sched/place/gang.h"
#include "sched/place/numa.h"

namespace berth::sched {

using state::GpuSlot;
using state::JobState;
using state::NodeState;
using state::State;

bool VictimBounds::counts(const State& state, const JobState& preemptor) {
  return preemptor.spec.groups.size() == 1 && !preemptor.spec.exclusive && !planted(Bug::kGangPartial) &&
         !AffinityFilter(state, preemptor).matter();
}

VictimBounds::VictimBounds(const State& state, const JobState& preemptor, SearchStats& work) : state_(state) {
  if (!counts(state, preemptor)) return;
  asks_.push_back(task_requirements(state, preemptor, 0, kAllModels));
  const std::int32_t least = preemptor.spec.groups.front().least();
  least_ = least;
  place_of_.assign(state.nodes().size(), -1);
  slots_ = Gang(state, preemptor, {}, work).add(0, least, {});
}

VictimBounds::Node& VictimBounds::at(NodeId id) {
  std::int32_t& place = place_of_[id.index()];
  if (place < 0) {
    place = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back(read(id));
    nodes_.back().slots = slots_on(id, nodes_.back());
  }
  return nodes_[static_cast<std::size_t>(place)];
}

VictimBounds::Node VictimBounds::read(NodeId id) const {
  const TaskRequirements& ask = asks_.front();
  const NodeState& node = state_.node(id);
  Node read;
  read.exclusive = node.exclusive;
  read.cpu_milli = node.spare_cpu_milli();
  read.memory_mib = node.spare_memory_mib();
  if (!ask.class_slots.empty()) {
    for (std::size_t c = 0; c < node.countables.size(); ++c) read.countables.push_back(node.spare_countable(c));
  }
  const bool nominated = !planted(Bug::kNominationIgnored);
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const GpuSlot& gpu = node.gpus[g];
    read.gpu_milli[g] = static_cast<std::int16_t>(gpu.free_milli - (nominated ? gpu.nominated_milli : 0));
    read.sharers[g] = gpu.sharers;
    const bool ours = gpu.sharers == 0 || gpu.share_domain == ask.trust_domain || planted(Bug::kShareAcrossDomains);
    if (ask.group.request.is_share() && !ours) read.closed |= 1U << g;
    if (ask.group.request.is_share() && gpu.nominated_away_from(ask.trust_domain))
      read.refused |= 1U << g;  // whichever victims leave
    read.slices[g] = gpu.slices;
    read.nominated_slices[g] = static_cast<MigSlices>(gpu.unavailable_slices() & ~gpu.slices);
    if (!gpu.usable() || (ask.models >> gpu.model.index() & 1U) == 0) read.refused |= 1U << g;
  }
  return read;
}

void VictimBounds::move(const JobState& victim, std::uint32_t first, std::uint32_t end, int sign) {
  if (!counts()) return;
  const TaskRequirements& ask = asks_.front();
  for (std::uint32_t t = first; t < end; ++t) {
    const TaskPlacement& placement = victim.attempt->tasks[t].placement;
    Node& node = at(placement.node);
    if (victim.spec.exclusive) node.exclusive += sign;
    node.cpu_milli -= sign * placement.cpu_milli;
    node.memory_mib -= sign * placement.memory_mib;
    const Countables& names = state_.node(placement.node).spec.countables;
    for (std::size_t c = 0; c < node.countables.size(); ++c)
      node.countables[c] -= sign * taken_by_task(placement.countables, names[c].first);
    for (const std::uint8_t gpu : placement.gpus) {
      node.gpu_milli[gpu] = static_cast<std::int16_t>(node.gpu_milli[gpu] - sign * placement.gpu_milli);
      const GpuModelId model = state_.node(placement.node).gpus[gpu].model;
      if (const MigGeometry* mig = ask.mig ? ask.mig->of[model.index()] : nullptr) {
        const MigSlices taken = mig->taken_by(placement.slices);
        node.slices[gpu] = static_cast<MigSlices>(sign < 0 ? node.slices[gpu] & ~taken : node.slices[gpu] | taken);
      }
      if (placement.gpu_milli < kMilli) node.sharers[gpu] = static_cast<std::int16_t>(node.sharers[gpu] + sign);
    }
    slots_ -= node.slots;
    node.slots = slots_on(placement.node, node);
    slots_ += node.slots;
  }
}

std::int64_t VictimBounds::slots_on(NodeId id, const Node& victim_bounds) const {
  const TaskRequirements& ask = asks_.front();
  const TaskRequest& request = ask.group.request;
  const NodeState& node = state_.node(id);
  if (!node.takes_tasks() || !ask.classes[state_.node_index().class_of(id).index()]) return 0;
  if (!suits(ask, node) || victim_bounds.exclusive > 0) return 0;
  std::int64_t slots = least_;
  if (request.cpu_milli > 0) slots = std::min(slots, victim_bounds.cpu_milli / request.cpu_milli);
  if (request.memory_mib > 0) slots = std::min(slots, victim_bounds.memory_mib / request.memory_mib);
  for (std::size_t c = 0; c < victim_bounds.countables.size(); ++c) {
    const std::int64_t each = taken_by_task(request.countables, node.spec.countables[c].first);
    if (each > 0) slots = std::min(slots, victim_bounds.countables[c] / each);
  }
  for (const auto& [name, amount] : request.countables) {
    if (amount_in(node.spec.countables, name) < amount) return 0;
  }
  slots = std::max<std::int64_t>(0, slots);
  if (request.gpus == 0 || slots == 0) return slots;
  std::int64_t tasks = 0;
  std::array<std::uint32_t, kMaxGpuModels> idle{};  // bit g: GPU g
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    if ((victim_bounds.refused >> g & 1U) != 0) continue;
    const std::int32_t available = std::max<std::int32_t>(0, victim_bounds.gpu_milli[g]);
    if (ask.mig) {
      tasks += instances_on(ask, node.gpus[g], victim_bounds.slices[g] | victim_bounds.nominated_slices[g]);
    } else if (request.is_share()) {
      if ((victim_bounds.closed >> g & 1U) == 0 || victim_bounds.sharers[g] == 0)
        tasks += available / request.gpu_milli;
    } else if (available == kMilli) {
      idle[node.gpus[g].model.index()] |= 1U << g;
    }
  }
  for (const std::uint32_t gpus : idle) tasks += gpus == 0 ? 0 : tasks_on(ask, node, gpus);
  return std::min(slots, tasks);
}

}  // namespace berth::sched

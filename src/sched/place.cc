#include "sched/place.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"
#include "sched/gang.h"
#include "sched/topology.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeClassId;
using state::NodeShape;
using state::NodeState;
using state::State;

struct FleetFit {
  bool allowed = false;  // some node is of a pool, taints and labels that the group accepts
  bool fits = false;     // the fleet, were it empty, holds what the group asks at least
};

// Judged by shapes of nodes; a group that selects by label is judged node by node, because labels are not indexed.
FleetFit fleet_fit(const State& state, const TaskAsk& ask) {
  FleetFit fit;
  std::int64_t slots = 0;
  const auto count = [&](const NodeShape& shape, std::int64_t known, std::int64_t there) {
    if (!ask.classes[shape.node_class.index()] || known == 0) return;
    fit.allowed = true;
    const std::int64_t here = std::min<std::int64_t>(slots_when_empty(ask, shape), ask.group.count);
    slots += here * there;
  };
  if (ask.group.node_selector.empty()) {
    for (const auto& [shape, nodes] : state.node_index().shapes()) count(shape, nodes.known, nodes.there);
  } else {
    for (const NodeState& node : state.nodes()) {
      if (!has_labels(ask.group, node.spec)) continue;
      count(state.node_index().shape_of(node.id), 1, node.status == NodeStatus::kLost ? 0 : 1);
    }
  }
  fit.fits = slots >= ask.group.least();
  return fit;
}

// Milli-GPUs that are available on nodes and models that the group may use.
std::int64_t available_to(const State& state, const TaskAsk& ask) {
  std::int64_t milli = 0;
  if (ask.group.node_selector.empty()) {
    for (std::size_t c = 0; c < ask.classes.size(); ++c) {
      for (std::size_t m = 0; m < kMaxGpuModels && ask.classes[c]; ++m) {
        if ((ask.models >> m & 1U) == 0) continue;
        milli += state.node_index().available_milli(NodeClassId(static_cast<std::uint16_t>(c)),
                                                    GpuModelId(static_cast<std::uint16_t>(m)));
      }
    }
    return milli;
  }
  for (const NodeState& node : state.nodes()) {
    const bool allowed = node.takes_tasks() && ask.classes[state.node_index().class_of(node.id).index()];
    if (!allowed || !has_labels(ask.group, node.spec)) continue;
    for (const state::GpuSlot& gpu : node.gpus) {
      if ((ask.models >> gpu.model.index() & 1U) != 0) milli += gpu.available_milli();
    }
  }
  return milli;
}

// Distinguishes "never", "busy" and "enough in total, but in the wrong places".
Reason reason_for(const State& state, const JobState& job, std::size_t index) {
  // Quota may have left fewer models than the group allows; what can never be is judged by the group alone.
  const TaskAsk ask = task_ask(state, job, index, kAllModels);
  Reason reason;
  reason.group = static_cast<std::int32_t>(index);
  reason.asked = ask.group.least() * ask.group.request.total_gpu_milli();
  reason.limit = available_to(state, ask);
  const FleetFit fleet = fleet_fit(state, ask);
  if (!fleet.fits) {
    reason.code = !fleet.allowed && !state.nodes().empty() ? ReasonCode::kPoolClosed : ReasonCode::kNeverFits;
  } else {
    reason.code = reason.limit >= reason.asked && reason.asked > 0 ? ReasonCode::kFragmented : ReasonCode::kGpusBusy;
  }
  return reason;
}

Counts counts_of(const JobSpec& spec, bool full) {
  Counts counts;
  for (const TaskGroup& group : spec.groups) counts.push_back(full ? group.count : group.least());
  return counts;
}

// The least counts, wherever they fit. Here and below nobody may ask `why` not.
std::optional<Region> place_anywhere(Gang& gang, const JobState& job, Reason* why) {
  const Counts least = counts_of(job.spec, false);
  std::size_t short_of = 0;
  if (gang.add_all(least, {}, short_of)) return Region{};
  if (planted(Bug::kGangPartial) && gang.add(short_of, least[short_of], {}) > 0) return Region{};
  if (why != nullptr) *why = reason_for(gang.state(), job, short_of);
  return std::nullopt;
}

// The fleet may refuse it too; what is never possible goes before what is not possible now.
Reason levels_refuse(Gang& gang, const JobState& job, const LevelRange& range) {
  std::size_t short_of = 0;
  const bool fleet_holds = gang.add_all(counts_of(job.spec, false), {}, short_of);
  gang.rollback_to(0);
  const Reason fleet = fleet_holds ? Reason() : reason_for(gang.state(), job, short_of);
  if (is_never(fleet.code) || range.required == kAnywhere) return fleet;
  Gang any_model(gang.state(), job, kAllModels, gang.work());
  const bool never = !some_domain_could_hold(any_model, range);
  if (!never && !fleet_holds) return fleet;
  Reason why = closest_domain(gang, range);
  if (never) why.code = ReasonCode::kNeverFits;
  return why;
}

// All of it within the levels that the job asks for, else the least counts.
std::optional<Region> place_within_levels(Gang& gang, const JobState& job, Reason* why) {
  const LevelRange range = level_range(gang.state(), job.spec.topology);
  if (why != nullptr) why->code = ReasonCode::kTopology;
  if (!range.known) return std::nullopt;
  for (const bool full : {true, false}) {
    if (auto region = place_by_topology(gang, counts_of(job.spec, full), range)) return region;
    if (counts_of(job.spec, true) == counts_of(job.spec, false)) break;
  }
  if (why != nullptr) *why = levels_refuse(gang, job, range);
  return std::nullopt;
}

std::optional<std::vector<TaskPlacement>> place_by(NodeScore score, const State& state, const JobState& job,
                                                   ModelMask models, PlaceWork& work, Reason* why) {
  Gang gang(state, job, models, work, score);
  const bool levels = job.spec.topology != TopologyConstraint();
  const auto region = levels ? place_within_levels(gang, job, why) : place_anywhere(gang, job, why);
  if (!region) return std::nullopt;
  const Counts placed = gang.counts_since(0);
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    if (placed[g] >= job.spec.groups[g].least()) gang.add(g, job.spec.groups[g].count - placed[g], *region);
  }
  return std::move(gang).in_rank_order();
}

// Whether tasks of several sizes fit beside each other depends on where the first of them go. It must not depend on the
// mix of requests, which changes while a refused gang sleeps (sched/waking.h): best fit says whether such a gang fits.
std::optional<std::vector<TaskPlacement>> place_gang(const State& state, const JobState& job, ModelMask models,
                                                     PlaceWork& work, Reason* why) {
  const NodeScore score = job.spec.exclusive ? NodeScore::kBestFit : state.config().scheduling.score;
  if (score == NodeScore::kBestFit || job.spec.groups.size() == 1) {
    return place_by(score, state, job, models, work, why);
  }
  auto fitting = place_by(NodeScore::kBestFit, state, job, models, work, why);
  if (!fitting) return std::nullopt;
  auto scored = place_by(score, state, job, models, work, nullptr);
  return scored ? std::move(scored) : std::move(fitting);
}

}  // namespace

bool may_use_pool(const State& state, QueueId queue, std::uint32_t pool) {
  const auto& queues = state.pools()[pool].queues;
  return queues.empty() ||
         std::any_of(queues.begin(), queues.end(), [&](QueueId top) { return state.is_below(queue, top); });
}

bool could_hold(const State& state, const JobState& job, std::size_t group, const NodeState& node) {
  return could_hold(state, task_ask(state, job, group, kAllModels), node);
}

bool could_hold(const State& state, const TaskAsk& ask, const NodeState& node) {
  return ask.classes[state.node_index().class_of(node.id).index()] && has_labels(ask.group, node.spec) &&
         slots_when_empty(ask, state.node_index().shape_of(node.id)) > 0;
}

std::int64_t gpu_milli_short(const State& state, const JobState& job, ModelMask models) {
  std::int64_t lacking = 0;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    const std::int64_t asked = group.least() * group.request.total_gpu_milli();
    if (asked == 0 || !group.node_selector.empty()) continue;
    lacking = std::max(lacking, asked - available_to(state, task_ask(state, job, g, models)));
  }
  return lacking;
}

std::optional<std::vector<TaskPlacement>> place(const State& state, const JobState& job, ModelMask models,
                                                PlaceWork& work, Reason& why) {
  return place_gang(state, job, models, work, &why);
}

std::vector<TaskPlacement> place_more(const State& state, const JobState& job, const std::vector<std::int32_t>& counts,
                                      PlaceWork& work) {
  const NodeId home = job.attempt->tasks.front().placement.node;
  const LevelRange range = level_range(state, job.spec.topology);
  if (!range.known) return {};
  Region region;
  if (range.required == node_level(state)) {
    region.node = home;
  } else if (range.required != kAnywhere) {
    for (const DomainId id : state.topology().of_node(home)) {
      if (std::cmp_equal(state.topology().domain(id).level, range.required)) region.domain = id;
    }
    if (!region.domain.valid()) return {};  // its node has moved
  }
  Gang gang(state, job, kAllModels, work);
  for (std::size_t g = 0; g < counts.size(); ++g) gang.add(g, counts[g], region);
  return std::move(gang).in_rank_order();
}

std::optional<std::vector<TaskPlacement>> try_place(const State& state, const JobState& job, ModelMask models,
                                                    PlaceWork& work) {
  return place_gang(state, job, models, work, nullptr);
}

}  // namespace berth::sched

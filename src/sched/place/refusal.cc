#include "sched/place/refusal.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sched/place/affinity.h"
#include "sched/place/feasibility.h"
#include "sched/place/numa.h"
#include "sched/place/own_feasibility.h"
#include "sched/place/place.h"
#include "sched/place/topology.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeShape;
using state::NodeState;
using state::State;

struct FleetFit {
  bool allowed = false;  // some node is of a pool, taints and labels that the group accepts
  bool fits = false;     // the fleet, were it empty and whole, holds what the group asks at least
};

// Failed GPUs may heal and lost nodes return, so both count. Judged by shapes of nodes; a group that selects by label
// is judged node by node, because labels are not indexed.
FleetFit fleet_fit(const State& state, const TaskRequirements& ask) {
  FleetFit fit;
  std::int64_t slots = 0;
  const auto count = [&](const NodeShape& shape, std::int64_t nodes) {
    if (!ask.classes[shape.node_class.index()] || nodes == 0) return;
    fit.allowed = true;
    slots += std::min<std::int64_t>(slots_when_empty(ask, healed(shape)), ask.group.count) * nodes;
  };
  if (!selects_by_label(ask)) {
    for (const auto& [shape, nodes] : state.node_index().shapes()) count(shape, nodes.known);
  } else {
    for (const NodeState& node : state.nodes()) {
      if (has_labels(ask.group, node.spec)) count(state.node_index().shape_of(node.id), 1);
    }
  }
  fit.fits = slots >= ask.group.least();
  return fit;
}

Reason closed_by(const TaskRequirements& ask, const state::ClosedSpan& span, NodeId node) {
  Reason reason;
  reason.code = ReasonCode::kMaintenance;
  reason.group = static_cast<std::int32_t>(ask.group_index);
  reason.node = node;
  reason.limit = span.from.ms;
  reason.used = span.to.ms;
  reason.asked = ask.stay->gone.is_never() ? 0 : (ask.stay->gone - ask.stay->latest) / 1000;
  return reason;
}

// Whether it would take tasks if no window closed it.
bool is_open_but_for_windows(const NodeState& node) { return node.status == NodeStatus::kReady && !node.cordoned; }

// The window without which the fleet, were it empty, would hold what the group asks; of several the first that is over,
// of a node that takes tasks but for it.
std::optional<Reason> closed_by_maintenance(const State& state, const TaskRequirements& ask) {
  if (!ask.stay) return std::nullopt;
  std::int64_t slots = 0;
  std::optional<std::pair<state::ClosedSpan, NodeId>> first;
  const auto goes_before = [&](const NodeState& node, const state::ClosedSpan& span) {
    if (!first) return true;
    const bool open = is_open_but_for_windows(node);
    const bool other_open = is_open_but_for_windows(state.node(first->second));
    return open != other_open ? open : span.to < first->first.to;
  };
  for (const NodeState& node : state.nodes()) {
    const state::NodeShape& shape = state.node_index().shape_of(node.id);
    const bool allowed = node.status != NodeStatus::kLost && ask.classes[shape.node_class.index()];
    if (!allowed || !has_labels(ask.group, node.spec)) continue;
    const std::int64_t here = std::min<std::int64_t>(slots_when_empty(ask, shape), ask.group.count);
    if (here == 0) continue;
    const auto span = closing(ask, node);
    if (!span && (slots += here) >= ask.group.least()) return std::nullopt;
    if (span && goes_before(node, *span)) first = {*span, node.id};
  }
  if (!first) return std::nullopt;
  return closed_by(ask, first->first, first->second);
}

// How many nodes that are not lost could hold a task of the group, were they empty.
std::int64_t nodes_that_could(const State& state, const TaskRequirements& ask) {
  return std::count_if(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    return node.status != NodeStatus::kLost && could_hold(state, ask, node);
  });
}

// Never, because of its image: more nodes could hold it that run no containers.
std::optional<Reason> refused_for_image(const State& state, const JobState& job, const TaskRequirements& ask) {
  if (ask.group.image.empty()) return std::nullopt;
  TaskRequirements relaxed = ask;
  set_image_aside(state, job, relaxed);
  if (!fleet_fit(state, relaxed).fits) return std::nullopt;
  Reason reason;
  reason.code = ReasonCode::kContainers;
  reason.group = static_cast<std::int32_t>(ask.group_index);
  reason.used = nodes_that_could(state, relaxed);
  reason.limit = nodes_that_could(state, ask);
  return reason;
}

// Why the fleet does not hold one group: distinguishes "never", "busy" and "enough in total, but in the wrong places".
Reason group_refused(const State& state, const JobState& job, const TaskRequirements& ask) {
  Reason reason;
  reason.group = ask.group_index;
  reason.asked = least_gpu_milli(ask);
  reason.limit = available_gpu_milli(state, {&ask, 1});
  const FleetFit fleet = fleet_fit(state, ask);
  if (const auto closed = fleet.fits ? closed_by_maintenance(state, ask) : std::nullopt) {
    reason = *closed;
  } else if (const auto image = fleet.fits ? std::nullopt : refused_for_image(state, job, ask)) {
    reason = *image;
  } else if (!fleet.fits) {
    reason.code = !fleet.allowed && !state.nodes().empty() ? ReasonCode::kNoEligibleNode : ReasonCode::kNeverFits;
    TaskRequirements relaxed = ask;
    relaxed.numa = NumaPolicy::kBestEffort;
    if (is_strict(ask.numa) && fleet_fit(state, relaxed).fits) reason.rule = PlaceRule::kNuma;
  } else {
    reason.code =
        reason.limit >= reason.asked && reason.asked > 0 ? ReasonCode::kFragmented : ReasonCode::kInsufficientResources;
  }
  return reason;
}

// Returns why the fleet does not hold the job, whose group `short_of` does not fit beside the groups before it. If a
// group can never fit, that group is the reason. Whether a group, or all groups together, can ever fit does not depend
// on what runs now.
Reason fleet_refuses(const State& state, const JobState& job, std::size_t short_of) {
  // Quota may have left fewer models than a group allows; what can never be is judged by the groups alone.
  std::vector<TaskRequirements> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_requirements(state, job, g, kAllModels));
  if (asks.size() == 1) return group_refused(state, job, asks.front());
  for (const TaskRequirements& ask : asks) {
    Reason never = group_refused(state, job, ask);
    if (!is_never(never.code)) continue;
    if (never.rule == PlaceRule::kJob) never.rule = PlaceRule::kGroup;
    never.wish = "group " + ask.group.name;
    return never;
  }
  Reason reason = group_refused(state, job, asks[short_of]);
  const Counts least = counts_of(job.spec, false);
  WhenEmpty fleet(asks, least);
  fleet.add_fleet(state);
  if (!fleet.may_hold()) reason.code = ReasonCode::kNeverFits;
  if (reason.code != ReasonCode::kInsufficientResources && reason.code != ReasonCode::kFragmented) return reason;
  // That the GPUs of all its groups are not there says more than what one of them lacks.
  std::int64_t asked = 0;
  for (const TaskRequirements& ask : asks) asked += least_gpu_milli(ask);
  const std::int64_t limit = available_gpu_milli(state, asks);
  if (limit >= asked && reason.code == ReasonCode::kInsufficientResources && reason.asked > 0) {
    reason.wish = "group " + asks[short_of].group.name;
    return reason;
  }
  reason.code = limit < asked || asked == 0 ? ReasonCode::kInsufficientResources : ReasonCode::kFragmented;
  reason.asked = asked;
  reason.limit = limit;
  return reason;
}

// Of one group its least count, of the others nothing.
Counts least_of(const JobSpec& spec, std::size_t group) {
  Counts counts(spec.groups.size());
  counts[group] = spec.groups[group].least();
  return counts;
}

// The resource that each domain of the level has too little of, were it empty: memory or CPU if there would be a domain
// without it, else GPUs. CPU stands for both.
std::size_t short_in_each_domain(Gang& gang, const JobState& job, const Counts& least, const LevelRange& range,
                                 const std::vector<std::int32_t>& levels) {
  const auto holds = [&](bool cpu, bool memory) {
    JobState relaxed = job;
    for (TaskGroup& group : relaxed.spec.groups) {
      if (!cpu) group.request.cpu_milli = 0;
      if (!memory) group.request.memory_mib = 0;
    }
    return some_domain_could_hold(Gang(gang.state(), relaxed, {kAllModels}, gang.work()), least, range, levels);
  };
  if (!holds(false, false)) return kDimGpu;
  return holds(true, false) ? kDimMemory : kDimCpu;
}

std::int64_t asked_of(const JobSpec& spec, const Counts& least, std::size_t dim) {
  std::int64_t asked = 0;
  for (std::size_t g = 0; g < least.size(); ++g) {
    const TaskRequest& one = spec.groups[g].request;
    asked += least[g] * (dim == kDimCpu ? one.cpu_milli : dim == kDimMemory ? one.memory_mib : one.total_gpu_milli());
  }
  return asked;
}

// Why so many tasks of the groups fit no domain of the level that is required of them.
Reason level_refuses(Gang& gang, const JobState& job, const Counts& least, const LevelRange& range,
                     const std::vector<std::int32_t>& levels) {
  Gang any_model(gang.state(), job, {kAllModels}, gang.work());
  Reason why = closest_domain(gang, least, range, levels);
  if (some_domain_could_hold(any_model, least, range, levels)) return why;
  why.code = ReasonCode::kNeverFits;
  const std::size_t dim = short_in_each_domain(gang, job, least, range, levels);
  why.dim = static_cast<std::uint32_t>(dim);
  why.asked = asked_of(job.spec, least, dim);
  return why;
}

// The same of one of its groups that has a level of its own.
Reason group_level_refuses(Gang& gang, const JobState& job, const JobLevels& levels, std::size_t group) {
  std::vector<std::int32_t> required = levels.required;
  required.push_back(levels.groups[group].required);
  Reason why = level_refuses(gang, job, least_of(job.spec, group), levels.groups[group], required);
  why.rule = PlaceRule::kGroup;
  why.wish = "group " + job.spec.groups[group].name;
  why.group = static_cast<std::int32_t>(group);
  return why;
}

// The first of its groups of which that can never be otherwise, whatever runs.
std::optional<Reason> group_never_fits(Gang& gang, const JobState& job, const JobLevels& levels) {
  for (std::size_t g = 0; g < levels.groups.size(); ++g) {
    if (levels.groups[g].required == kAnywhere) continue;
    const Reason why = group_level_refuses(gang, job, levels, g);
    if (is_never(why.code)) return why;
  }
  return std::nullopt;
}

// The job as a whole would find its domain: which of its groups does not, by itself or beside the others.
Reason groups_refuse(Gang& gang, const JobState& job, const JobLevels& levels) {
  for (std::size_t g = 0; g < levels.groups.size(); ++g) {
    if (levels.groups[g].required == kAnywhere) continue;
    const bool fits = place_by_topology(gang, least_of(job.spec, g), levels).has_value();
    gang.rollback_to(0);
    if (!fits) return group_level_refuses(gang, job, levels, g);
  }
  Reason why;
  why.code = ReasonCode::kTopology;
  why.rule = PlaceRule::kGroups;
  return why;
}

// The fleet may refuse it too; what is never possible goes before what is not possible now.
Reason levels_refuse(Gang& gang, const JobState& job) {
  const JobLevels levels = job_levels(gang);
  if (!levels.known()) {
    Reason unknown;
    unknown.code = ReasonCode::kTopology;
    return unknown;
  }
  const Counts least = counts_of(job.spec, false);
  std::size_t short_of = 0;
  const bool fleet_holds = gang.add_all(least, {}, short_of);
  gang.rollback_to(0);
  const Reason fleet = fleet_holds ? Reason() : fleet_refuses(gang.state(), job, short_of);
  if (is_never(fleet.code)) return fleet;
  if (const auto never = group_never_fits(gang, job, levels)) return *never;
  const bool whole =
      !levels.groups.empty() && place_by_topology(gang, least, {levels.job, {}, levels.required}).has_value();
  gang.rollback_to(0);
  if (whole) return groups_refuse(gang, job, levels);
  if (levels.job.required == kAnywhere) return fleet;
  const Reason why = level_refuses(gang, job, least, levels.job, levels.required);
  return is_never(why.code) || fleet_holds ? why : fleet;
}

// Returns the first rule of affinity that closes one of these places. Requires that the job finds them without
// affinity.
Reason affinity_refuses(const State& state, const JobState& job, const Gang& relaxed) {
  AffinityFilter neighbours(state, job);
  for (const TaskPlacement& placement : relaxed.placements()) {
    if (!neighbours.allows(placement.node)) return neighbours.why_closed(placement.node);
    neighbours.enter(placement.node, +1);
  }
  return neighbours.why_closed(relaxed.placements().front().node);  // they are not together
}

// An affinity is told as the reason where places would be found without it.
void blame_neighbours(const State& state, const JobState& job, ModelMask models, SearchStats& work, Reason& why) {
  for (const Besides besides : {Besides::kTerms, Besides::kNobody}) {
    Gang relaxed(state, job, {models, NodeScore::kBestFit, Pools::kAny, besides}, work);
    if (place_all(relaxed, job)) continue;
    why = affinity_refuses(state, job, relaxed);
    return;
  }
}

// The levels within one domain of which each task of the group has to be, alone or near others.
std::vector<std::string> levels_around(const JobSpec& spec, const TaskGroup& group) {
  std::vector<std::string> levels;
  const auto add = [&](const std::string& level) {
    const bool known = std::find(levels.begin(), levels.end(), level) != levels.end();
    if (!level.empty() && level != "node" && !known) levels.push_back(level);
  };
  add(spec.topology.required);
  add(group.topology.required);
  for (const AffinityTerm& term : spec.affinity) {
    if (term.required) add(term.level);
  }
  return levels;
}

// Returns the reason if the job can never start because of the levels that it requires, else nothing. That is so if a
// group has fewer places than its min_count on the nodes that lie in a domain of each such level, were they empty and
// whole.
std::optional<Reason> outside_levels(const State& state, const JobState& job) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const std::vector<std::string> names = levels_around(job.spec, job.spec.groups[g]);
    if (names.empty()) continue;
    std::vector<std::int32_t> levels;
    for (const std::string& name : names) levels.push_back(level_range(state, {name, {}}).required);
    const TaskRequirements ask = task_requirements(state, job, g, kAllModels);
    Reason reason;
    for (const NodeState& node : state.nodes()) {
      if (!is_in_all(state, node.id, levels)) continue;
      reason.limit += std::min<std::int64_t>(slots_when_whole(state, ask, node), ask.group.count);
      if (reason.limit >= ask.group.least()) break;
    }
    if (reason.limit >= ask.group.least()) continue;
    reason.code = ReasonCode::kNeverFits;
    reason.group = static_cast<std::int32_t>(g);
    for (const std::string& name : names) reason.wish += (reason.wish.empty() ? "one " : " and one ") + name;
    return reason;
  }
  return std::nullopt;
}

// How many nodes would take one more task of the group but for its NUMA policy.
std::int64_t nodes_in_pieces(const State& state, const TaskRequirements& ask) {
  TaskRequirements relaxed = ask;
  relaxed.numa = NumaPolicy::kBestEffort;
  return std::count_if(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    return node.takes_tasks() && ask.classes[state.node_index().class_of(node.id).index()] && suits(ask, node) &&
           try_node(relaxed, node, {}) && !try_node(ask, node, {});
  });
}

// The NUMA policy is told as the reason where places would be found without it: of the first group that it is enough to
// relax, else of the first that has one.
void blame_numa(const State& state, const JobState& job, ModelMask models, SearchStats& work, Reason& why) {
  std::vector<std::size_t> strict;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    if (is_strict(numa_policy(job.spec, job.spec.groups[g]))) strict.push_back(g);
  }
  if (strict.empty() || is_never(why.code)) return;
  const auto fits_without = [&](std::span<const std::size_t> groups) {
    Gang relaxed(state, job, {models}, work);
    for (const std::size_t group : groups) relaxed.set_numa_aside(group);
    return !place_all(relaxed, job);
  };
  if (!fits_without(strict)) return;
  std::size_t group = strict.front();
  for (std::size_t i = strict.size(); i-- > 0 && strict.size() > 1;) {
    if (fits_without(std::span(strict).subspan(i, 1))) group = strict[i];
  }
  why = {};
  why.code = ReasonCode::kNuma;
  why.group = static_cast<std::int32_t>(group);
  why.asked = job.spec.exclusive ? 0 : job.spec.groups[group].request.gpus;
  why.limit = nodes_in_pieces(state, task_requirements(state, job, group, models));
  why.wish = name_of(job.spec.groups[group].numa);
}

std::int64_t available_of(const NodeState& node, const std::string& name) {
  for (std::size_t c = 0; c < node.countables.size(); ++c) {
    if (node.spec.countables[c].first == name) return node.available_countable(c);
  }
  return 0;
}

// Returns the first countable that the tasks of the gang, as placed, have too little of.
std::optional<std::string> short_at(const State& state, std::span<const TaskPlacement> placements) {
  std::map<NodeId, NodeDelta> taken;
  for (const TaskPlacement& one : placements) taken[one.node].add(one);
  for (const auto& [node, delta] : taken) {
    if (const auto name = short_countable(state.node(node), delta)) return std::string(*name);
  }
  return std::nullopt;
}

// Returns the countable without which places would be found for the job; nothing: it is not for want of countables.
// Where several are lacking at once, it is the first that is too little on the nodes that it would have without any.
std::optional<std::string> lacking_countable(const State& state, const JobState& job, ModelMask models,
                                             SearchStats& work) {
  Gang relaxed(state, job, {models}, work);
  const auto limits = [](const TaskRequirements& ask) { return !ask.class_slots.empty(); };
  if (std::none_of(relaxed.asks().begin(), relaxed.asks().end(), limits)) return std::nullopt;
  relaxed.set_countables_aside();
  if (place_all(relaxed, job)) return std::nullopt;
  std::set<std::string> names;
  for (const TaskGroup& group : job.spec.groups) {
    for (const auto& [name, amount] : group.request.countables) names.insert(name);
  }
  for (const std::string& name : names) {
    JobState without = job;
    for (TaskGroup& group : without.spec.groups)
      std::erase_if(group.request.countables, [&](const auto& one) { return one.first == name; });
    Gang gang(state, without, {models}, work);
    if (!place_all(gang, without)) return name;
  }
  return short_at(state, relaxed.placements());
}

// A countable is told as the reason where places would be found but for it: with the node that has the most of it free,
// of those that have room for a task but for it, and how many tasks it is enough for on all of them.
void blame_countables(const State& state, const JobState& job, ModelMask models, SearchStats& work, Reason& why) {
  if (!is_room_reason(why.code)) return;
  const auto name = lacking_countable(state, job, models, work);
  if (!name) return;
  const auto asks_it = [&](const TaskGroup& group) { return taken_by_task(group.request.countables, *name) > 0; };
  const auto group = std::find_if(job.spec.groups.begin(), job.spec.groups.end(), asks_it);
  const auto index = static_cast<std::size_t>(group - job.spec.groups.begin());
  const TaskRequirements ask = task_requirements(state, job, index, models);
  TaskRequirements aside = ask;
  set_countables_aside(aside);
  why = {};
  why.code = ReasonCode::kCountable;
  why.group = static_cast<std::int32_t>(index);
  why.wish = *name;
  why.asked = taken_by_task(group->request.countables, *name);
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks() || !could_hold(state, ask, node) || !has_place(aside, node, {})) continue;
    const std::int64_t here = available_of(node, *name);
    why.used += here / why.asked;
    if (here > why.limit || !why.node.valid()) why.node = node.id;
    why.limit = std::max(why.limit, here);
  }
}

// Whether a window closes a node to a task of the job.
bool any_is_closed(const State& state, const Gang& gang) {
  return std::any_of(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    return !node.maintenance.empty() && std::any_of(gang.asks().begin(), gang.asks().end(),
                                                    [&](const auto& ask) { return closing(ask, node).has_value(); });
  });
}

// A maintenance window is told as the reason where places would be found but for those that are planned: one of a node
// that it would then take.
void blame_windows(const State& state, const JobState& job, ModelMask models, SearchStats& work, Reason& why) {
  if (state.maintenance().empty() || !is_room_reason(why.code)) return;
  Gang relaxed(state, job, {models}, work);
  if (!any_is_closed(state, relaxed)) return;
  relaxed.set_windows_aside();
  if (place_all(relaxed, job)) return;
  for (const TaskPlacement& placement : relaxed.placements()) {
    const TaskRequirements ask = task_requirements(state, job, placement.group, models);
    if (const auto span = closing(ask, state.node(placement.node))) {
      why = closed_by(ask, *span, placement.node);
      return;
    }
  }
}

}  // namespace

Reason reason_of(Gang& gang, const JobState& job, ModelMask models, const PlaceRefusal& refusal) {
  const State& state = gang.state();
  SearchStats& work = gang.work();
  Reason why =
      refusal.kind == PlaceRefusal::Kind::kLevels ? levels_refuse(gang, job) : fleet_refuses(state, job, refusal.group);
  if (gang.neighbours().matter()) blame_neighbours(state, job, models, work, why);
  blame_numa(state, job, models, work, why);
  blame_countables(state, job, models, work, why);
  blame_windows(state, job, models, work, why);
  const bool told = is_never(why.code) && (why.domain.valid() || why.node.valid());
  auto never = told ? std::nullopt : outside_levels(state, job);
  if (never && why.code != ReasonCode::kNoEligibleNode && why.code != ReasonCode::kContainers) return *never;
  return is_never(why.code) ? why : too_few_places(state, job).value_or(why);
}

}  // namespace berth::sched

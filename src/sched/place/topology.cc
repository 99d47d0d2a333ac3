#include "sched/place/topology.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sched/place/feasibility.h"
#include "sched/place/node_iterator.h"
#include "sched/place/numa.h"

namespace berth::sched {

using state::Domain;
using state::DomainRoom;
using state::NodeShape;
using state::NodeState;
using state::State;

namespace {

// Returns how many tasks of the group the domain has GPUs for: an upper bound of what fits.
std::int64_t slots_in(const TaskRequirements& ask, const Domain& domain) {
  const TaskRequest& request = ask.group.request;
  if (request.gpus == 0) return domain.nodes.empty() ? 0 : kUnlimited;
  std::int64_t slots = 0;
  for (const DomainRoom& room : domain.room) {
    if (!ask.classes[room.node_class.index()] || (ask.models >> room.model.index() & 1U) == 0) continue;
    if (request.is_share())
      slots += room.milli / request.gpu_milli;
    else if (room.whole >= request.gpus)
      slots += ask.exclusive ? std::int64_t{room.nodes} : std::int64_t{room.nodes} * (room.whole / request.gpus);
  }
  return slots;
}

std::int64_t slots_on(const Gang& gang, const TaskRequirements& ask, const NodeState& node) {
  const TaskRequest& request = ask.group.request;
  const bool allowed = node.takes_tasks() && ask.classes[gang.state().node_index().class_of(node.id).index()];
  if (!allowed || !suits(ask, node) || !gang.neighbours().allows(node.id)) return 0;
  std::int64_t slots = ask.exclusive || gang.neighbours().alone_on(node.id) ? 1 : kUnlimited;
  if (request.cpu_milli > 0) slots = std::min(slots, node.available_cpu_milli() / request.cpu_milli);
  if (request.memory_mib > 0) slots = std::min(slots, node.available_memory_mib() / request.memory_mib);
  if (!has_countables(ask, node, {})) return 0;
  if (request.gpus == 0) return slots;
  std::array<std::uint32_t, kMaxGpuModels> idle{};  // bit g: GPU g
  std::int64_t with_gpus = 0;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const state::GpuSlot& gpu = node.gpus[g];
    if ((ask.models >> gpu.model.index() & 1U) == 0) continue;
    if (ask.mig)
      with_gpus += instances_on(ask, gpu, gpu.unavailable_slices());
    else if (request.is_share())
      with_gpus += gpu.available_milli() / request.gpu_milli;
    else if (gpu.available_milli() == kMilli)
      idle[gpu.model.index()] |= 1U << g;
  }
  for (const std::uint32_t gpus : idle) with_gpus += gpus == 0 ? 0 : tasks_on(ask, node, gpus);
  return std::min(slots, with_gpus);
}

Counts slots_of(const Gang& gang, const Region& region) {
  Counts slots;
  for (std::size_t g = 0; g < gang.spec().groups.size(); ++g) {
    const std::int64_t here = region.node.valid()
                                  ? slots_on(gang, gang.ask(g), gang.state().node(region.node))
                                  : slots_in(gang.ask(g), gang.state().topology().domain(region.domain));
    slots.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(here, std::numeric_limits<std::int32_t>::max())));
  }
  return slots;
}

bool holds_all(const Counts& slots, const Counts& wanted) {
  for (std::size_t g = 0; g < wanted.size(); ++g) {
    if (slots[g] < wanted[g]) return false;
  }
  return true;
}

// Returns the milli-GPUs of the wanted tasks that the slots can hold. A task without GPUs counts as one milli-GPU.
std::int64_t held(const Gang& gang, const Counts& slots, const Counts& wanted) {
  std::int64_t milli = 0;
  for (std::size_t g = 0; g < wanted.size(); ++g) {
    const std::int64_t per_task = std::max<std::int64_t>(1, gang.spec().groups[g].request.total_gpu_milli());
    milli += per_task * std::min(slots[g], wanted[g]);
  }
  return milli;
}

std::int64_t available_in(const Gang& gang, DomainId domain) {
  std::int64_t milli = 0;
  for (const DomainRoom& room : gang.state().topology().domain(domain).room) {
    bool usable = false;
    for (std::size_t g = 0; g < gang.spec().groups.size(); ++g) {
      const TaskRequirements& ask = gang.ask(g);
      usable = usable || (ask.classes[room.node_class.index()] && (ask.models >> room.model.index() & 1U) != 0);
    }
    if (usable) milli += room.milli;
  }
  return milli;
}

bool is_none(const Counts& counts) {
  return std::all_of(counts.begin(), counts.end(), [](std::int32_t count) { return count == 0; });
}

// DomainSplit: spreads the gang's tasks over the parts of a region by rule 5 of the header.
class DomainSplit {
 public:
  DomainSplit(Gang& gang, std::int32_t innermost) : gang_(gang), innermost_(innermost) {}

  // Adds as many of `wanted` as it can, and subtracts them from it.
  void fill(const Region& region, std::int32_t level, Counts& wanted) {
    if (level < innermost_) fill_parts(parts_of(region, level), wanted);
    for (std::size_t g = 0; g < wanted.size(); ++g) wanted[g] -= gang_.add(g, wanted[g], region);
  }

 private:
  struct Part {
    Region region;
    std::int32_t level = 0;
    Counts slots;
    std::int64_t all = 0;  // the sum of all slots
    bool used = false;
  };

  void add_domain(std::vector<Part>& parts, DomainId id) const {
    const auto level = static_cast<std::int32_t>(gang_.state().topology().domain(id).level);
    add(parts, {{id, {}}, level, {}});
  }
  void add(std::vector<Part>& parts, Part part) const {
    part.slots = slots_of(gang_, part.region);
    for (const std::int32_t slots : part.slots) part.all += slots;
    if (part.all > 0) parts.push_back(std::move(part));
  }

  std::vector<Part> parts_of(const Region& region, std::int32_t level) const {
    const State& state = gang_.state();
    std::vector<Part> parts;
    const bool fleet = !region.domain.valid();
    const std::int32_t nodes = node_level(state);
    if (fleet && nodes > 0) {
      for (const DomainId id : state.topology().at_level(0)) add_domain(parts, id);
    } else if (fleet) {
      for (const NodeState& node : state.nodes()) add(parts, {{{}, node.id}, nodes, {}});
    } else if (const Domain& domain = state.topology().domain(region.domain); !domain.children.empty()) {
      for (const DomainId id : domain.children) add_domain(parts, id);
    } else if (innermost_ == nodes && level < nodes) {
      for (const NodeId id : domain.nodes) add(parts, {{{}, id}, nodes, {}});
    }
    return parts;
  }

  Part* next(std::vector<Part>& parts, const Counts& wanted) const {
    Part* best = nullptr;
    bool best_all = false;
    std::int64_t best_held = 0;
    for (Part& part : parts) {
      if (part.used) continue;
      const bool all = holds_all(part.slots, wanted);
      const std::int64_t milli = all ? 0 : held(gang_, part.slots, wanted);
      if (!all && (best_all || milli == 0)) continue;
      const bool better = best == nullptr || (all && !best_all) || (all ? part.all < best->all : milli > best_held);
      if (!better) continue;
      best = &part;
      best_all = all;
      best_held = milli;
    }
    return best;
  }

  void fill_parts(std::vector<Part> parts, Counts& wanted) {
    while (!is_none(wanted)) {
      Part* part = next(parts, wanted);
      if (part == nullptr) return;
      part->used = true;
      fill(part->region, part->level, wanted);
    }
  }

  Gang& gang_;
  std::int32_t innermost_;
};

// Places all tasks within the region, split as little as possible below it.
bool place_in(Gang& gang, const Region& region, std::int32_t level, std::int32_t innermost, const Counts& counts) {
  std::size_t short_of = 0;
  if (level < innermost) {
    const std::size_t mark = gang.mark();
    Counts wanted = counts;
    DomainSplit(gang, innermost).fill(region, level, wanted);
    if (is_none(wanted)) return true;
    gang.rollback_to(mark);  // tasks of different sizes may be in each other's way
  }
  return gang.add_all(counts, region, short_of);
}

// Returns the smallest number of other replicas at any node of the domain that has room, for a replica that asks to be
// spread. Nothing if no node has room.
std::optional<Crowd> least_crowd(const Gang& gang, DomainId domain, const Counts& counts) {
  if (!gang.other_replicas().matter()) return Crowd();
  std::optional<Crowd> least;
  for (const NodeId node : gang.state().topology().domain(domain).nodes) {
    if (!holds_all(slots_of(gang, {{}, node}), counts)) continue;
    Crowd crowd = gang.other_replicas().on(node);
    if (!least || crowd < *least) least = std::move(crowd);
  }
  return least;
}

// Returns the domains of a level that have GPUs for all tasks, the one with the least room first. For a replica that
// asks to be spread, the domain with its best node of all comes first.
std::vector<DomainId> candidates(const Gang& gang, std::int32_t level, const Counts& counts) {
  const state::TopologyIndex& topology = gang.state().topology();
  std::vector<std::tuple<Crowd, std::int64_t, DomainId>> by_room;
  for (const DomainId id : topology.at_level(static_cast<std::size_t>(level))) {
    if (!holds_all(slots_of(gang, {id, {}}), counts)) continue;
    if (auto crowd = least_crowd(gang, id, counts)) by_room.emplace_back(*crowd, available_in(gang, id), id);
  }
  const auto order = [](const auto& one) { return std::tie(std::get<0>(one), std::get<1>(one)); };
  std::stable_sort(by_room.begin(), by_room.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  std::vector<DomainId> ids;
  for (const auto& [crowd, room, id] : by_room) ids.push_back(id);
  return ids;
}

// Returns the domain of the level that contains the region; nothing if none does.
std::optional<Region> around(const State& state, const Region& region, std::int32_t level) {
  if (level == kAnywhere) return Region{};
  if (level == node_level(state)) return region;
  const auto wanted = static_cast<std::size_t>(level);
  if (region.domain.valid()) {
    DomainId id = region.domain;
    while (id.valid() && state.topology().domain(id).level > wanted) id = state.topology().domain(id).parent;
    if (id.valid() && state.topology().domain(id).level == wanted) return Region{id, {}};
    return std::nullopt;
  }
  for (const DomainId id : state.topology().of_node(region.node)) {
    if (state.topology().domain(id).level == wanted) return Region{id, {}};
  }
  return std::nullopt;
}

// A region and its level.
struct Part {
  Region region;
  std::int32_t level = kAnywhere;
};

bool contains(const State& state, const Part& part, const Region& region) {
  const auto wide = around(state, region, part.level);
  return wide && *wide == part.region;
}

constexpr std::int32_t kMostTries = 256;  // places tried for groups that have levels of their own

// DomainSearch: places the tasks of a gang within its levels.
class DomainSearch {
 public:
  DomainSearch(Gang& gang, const Counts& counts, const JobLevels& levels)
      : gang_(gang), counts_(counts), levels_(levels), regions_(counts.size()), rest_(counts) {
    for (std::size_t g = 0; g < levels.groups.size(); ++g) {
      if (levels.groups[g].preferred == kAnywhere || counts[g] == 0) continue;
      own_.push_back(g);
      rest_[g] = 0;
    }
    const auto size = [&](std::size_t g) {
      return counts[g] * std::max<std::int64_t>(1, gang.spec().groups[g].request.total_gpu_milli());
    };
    std::stable_sort(own_.begin(), own_.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  }

  std::optional<std::vector<Region>> place() {
    const auto put = [&](const Part& part) {
      return own_.empty() ? put_in(part, levels_.job, counts_) : groups_in(part, 0);
    };
    const auto accept = [&](const Part& part) {
      const Region wide = *around(gang_.state(), part.region, levels_.job.required);
      for (std::size_t g = 0; g < regions_.size(); ++g) {
        const bool own = levels_.narrower(g) && counts_[g] > 0;
        if (!own) regions_[g] = wide;
      }
      return true;
    };
    const auto put_where_required = [&](const Part& part) {
      return std::all_of(levels_.required.begin(), levels_.required.end(),
                         [&](std::int32_t level) { return around(gang_.state(), part.region, level).has_value(); }) &&
             put(part);
    };
    if (!try_levels(counts_, levels_.job, {}, put_where_required, accept)) return std::nullopt;
    return std::move(regions_);
  }

 private:
  // Tries one part after the other, from the preferred level outwards. The first is taken for which `put` places the
  // tasks and `accept` places the rest.
  template <class Put, class Accept>
  bool try_levels(const Counts& counts, const LevelRange& range, const Part& inside, const Put& put,
                  const Accept& accept) {
    const State& state = gang_.state();
    const auto attempt = [&](const Part& part) {
      const std::size_t mark = gang_.mark();
      if (around(state, part.region, range.required) && put(part) && accept(part)) return true;
      gang_.rollback_to(mark);
      return false;
    };
    for (std::int32_t level = std::max(range.preferred, inside.level); level >= std::max(range.required, inside.level);
         --level) {
      if (level == inside.level) {
        if (attempt(inside)) return true;
      } else if (level == node_level(state)) {
        if (try_nodes(counts, inside, attempt)) return true;
      } else {
        for (const DomainId id : candidates(gang_, level, counts)) {
          if (contains(state, inside, {id, {}}) && attempt({{id, {}}, level})) return true;
        }
      }
    }
    return false;
  }

  // Tries the nodes that have room for all tasks, the tightest first.
  template <class Attempt>
  bool try_nodes(const Counts& counts, const Part& inside, const Attempt& attempt) {
    std::size_t first = 0;
    while (first < counts.size() && counts[first] == 0) ++first;
    std::int64_t milli = 0;
    for (std::size_t g = 0; g < counts.size(); ++g)
      milli += counts[g] * gang_.spec().groups[g].request.total_gpu_milli();
    if (first == counts.size() || milli > static_cast<std::int64_t>(kMaxGpusPerNode) * kMilli) return false;
    FitOrder order(gang_.state(), gang_.ask(first), gang_.work().nodes_scored);
    while (const auto node = order.next()) {
      const Part part{{{}, *node}, node_level(gang_.state())};
      if (inside.level != kAnywhere && !contains(gang_.state(), inside, part.region)) continue;
      if (holds_all(slots_of(gang_, part.region), counts) && attempt(part)) return true;
    }
    return false;
  }

  bool put_in(const Part& part, const LevelRange& range, const Counts& counts) {
    return place_in(gang_, part.region, part.level, range.preferred, counts);
  }

  // Places the groups from `next` on that have levels of their own, then the other groups.
  bool groups_in(const Part& part, std::size_t next) {
    if (next == own_.size()) return is_none(rest_) || put_in(part, levels_.job, rest_);
    const std::size_t g = own_[next];
    Counts counts(counts_.size());
    counts[g] = counts_[g];
    const LevelRange& range = levels_.groups[g];
    const auto put = [&](const Part& own) { return tries_++ < kMostTries && put_in(own, range, counts); };
    const auto accept = [&](const Part& own) {
      if (range.required > levels_.job.required) regions_[g] = *around(gang_.state(), own.region, range.required);
      return groups_in(part, next + 1);
    };
    return try_levels(counts, range, part, put, accept);
  }

  Gang& gang_;
  const Counts& counts_;
  const JobLevels& levels_;
  std::vector<Region> regions_;
  std::vector<std::size_t> own_;  // groups with levels of their own, the largest first
  Counts rest_;                   // tasks of the other groups
  std::int32_t tries_ = 0;
};

}  // namespace

std::int32_t node_level(const State& state) { return static_cast<std::int32_t>(state.topology().levels().size()); }

std::string level_name(const State& state, std::int32_t level) {
  if (level == kAnywhere) return {};
  return level == node_level(state) ? "node" : state.topology().levels()[static_cast<std::size_t>(level)];
}

LevelRange level_range(const State& state, const TopologyConstraint& topology) {
  LevelRange range;
  const auto number = [&](const std::string& name) {
    if (const auto level = state.topology().level_named(name)) return static_cast<std::int32_t>(*level);
    range.known = range.known && name == "node";
    return node_level(state);
  };
  if (!topology.required.empty()) {
    range.required = number(topology.required);
    range.preferred = node_level(state);
  }
  if (!topology.preferred.empty()) range.preferred = std::max(range.required, number(topology.preferred));
  return range;
}

bool JobLevels::known() const {
  return job.known && std::all_of(groups.begin(), groups.end(), [](const LevelRange& one) { return one.known; });
}

namespace {

// Returns the levels that the job and its groups state, and the level within which affinity keeps the job together.
JobLevels stated_levels(const Gang& gang) {
  const State& state = gang.state();
  const JobSpec& spec = gang.spec();
  // A job that is to be spread should not prefer one node. With preferred affinity terms it is not known which domain
  // has the jobs to be near.
  const bool wishes = gang.neighbours().prefers();
  const auto range_of = [&](const TopologyConstraint& topology) {
    LevelRange range = level_range(state, topology);
    if (!topology.preferred.empty() || range.required == kAnywhere) return range;
    if (wishes)
      range.preferred = range.required;
    else if (spec.spread)
      range.preferred = std::max(range.required, node_level(state) - 1);
    return range;
  };
  JobLevels levels{range_of(spec.topology), {}, {}};
  if (levels.job.required != kAnywhere) levels.required.push_back(levels.job.required);
  const auto narrow = [&](const LevelRange& by) {
    if (by.required != kAnywhere) levels.required.push_back(by.required);
    levels.job.known = levels.job.known && by.known;
    levels.job.required = std::max(levels.job.required, by.required);
    levels.job.preferred = std::max({levels.job.required, levels.job.preferred, by.preferred});
  };
  if (const auto together = gang.neighbours().together()) {
    const auto level = static_cast<std::int32_t>(*together);
    narrow({level, level});
  }
  const bool asked = std::any_of(spec.groups.begin(), spec.groups.end(),
                                 [](const TaskGroup& group) { return group.topology != TopologyConstraint(); });
  if (!asked) return levels;
  if (spec.groups.size() == 1) {
    narrow(range_of(spec.groups.front().topology));
  } else {
    for (const TaskGroup& group : spec.groups) levels.groups.push_back(range_of(group.topology));
  }
  return levels;
}

// A replica with one task is within one node anyway. Which domain it prefers depends on the other replicas, so no level
// is preferred here.
void leave_to_other_replicas(const State& state, JobLevels& levels) {
  std::erase(levels.required, node_level(state));
  levels.job.required = kAnywhere;
  for (const std::int32_t level : levels.required) levels.job.required = std::max(levels.job.required, level);
  levels.job.preferred = levels.job.required;
}

}  // namespace

JobLevels job_levels(const Gang& gang) {
  JobLevels levels = stated_levels(gang);
  if (gang.other_replicas().matter() && levels.known()) leave_to_other_replicas(gang.state(), levels);
  return levels;
}

std::optional<std::vector<Region>> place_by_topology(Gang& gang, const Counts& counts, const JobLevels& levels) {
  return DomainSearch(gang, counts, levels).place();
}

std::optional<Region> region_around(const State& state, NodeId node, std::int32_t level) {
  return around(state, {{}, node}, level);
}

bool TopologyScope::let_in(std::size_t group, NodeId node) {
  const bool own = !groups_.empty();
  const auto of_job = region_around(*state_, node, levels_->job.required);
  const auto of_group = region_around(*state_, node, own ? levels_->groups[group].required : kAnywhere);
  if (!of_job || !of_group || job_.value_or(*of_job) != *of_job) return false;
  if (own && groups_[group].value_or(*of_group) != *of_group) return false;
  job_ = of_job;
  if (own) groups_[group] = of_group;
  return true;
}

Region TopologyScope::around(std::size_t group) const {
  return levels_->narrower(group) && groups_[group] ? *groups_[group] : job_.value_or(Region{});
}

bool in_required_domains(const State& state, std::span<const TaskPlacement> placements, const JobLevels& levels) {
  TopologyScope homes(state, levels);
  return levels.known() && std::all_of(placements.begin(), placements.end(), [&](const TaskPlacement& task) {
           return is_in_all(state, task.node, levels.required) && homes.let_in(task.group, task.node);
         });
}

bool is_in_all(const State& state, NodeId node, const std::vector<std::int32_t>& levels) {
  return std::all_of(levels.begin(), levels.end(), [&](std::int32_t level) {
    return around(state, {{}, node}, level).has_value();
  });
}

Reason closest_domain(Gang& gang, const Counts& least, const LevelRange& range,
                      const std::vector<std::int32_t>& levels) {
  const State& state = gang.state();
  Reason reason;
  reason.code = ReasonCode::kTopology;
  for (std::size_t g = 0; g < least.size(); ++g)
    reason.asked += least[g] * gang.spec().groups[g].request.total_gpu_milli();
  std::optional<std::tuple<std::int64_t, std::int64_t>> best;
  const auto consider = [&](const Region& region, std::int64_t room) {
    const auto outside = [&](std::int32_t level) { return !around(state, region, level); };
    if (std::any_of(levels.begin(), levels.end(), outside)) return;
    const Counts slots = slots_of(gang, region);
    const std::tuple here(held(gang, slots, least), room);
    if (best && here <= *best) return;
    best = here;
    reason.domain = region.domain;
    reason.node = region.node;
    reason.used = std::get<0>(here);
    reason.limit = room;
    reason.group = 0;
    while (static_cast<std::size_t>(reason.group) + 1 < least.size() &&
           slots[static_cast<std::size_t>(reason.group)] >= least[static_cast<std::size_t>(reason.group)])
      ++reason.group;
  };
  if (range.required == node_level(state)) {
    for (const NodeState& node : state.nodes()) {
      if (!node.takes_tasks()) continue;
      std::int64_t room = 0;
      for (const state::GpuSlot& gpu : node.gpus) room += gpu.available_milli();
      consider({{}, node.id}, room);
    }
  } else {
    for (const DomainId id : state.topology().at_level(static_cast<std::size_t>(range.required)))
      consider({id, {}}, available_in(gang, id));
  }
  return reason;
}

bool some_domain_could_hold(const Gang& gang, const Counts& least, const LevelRange& range,
                            const std::vector<std::int32_t>& levels) {
  const State& state = gang.state();
  const bool by_node =
      std::any_of(levels.begin(), levels.end(), [&](std::int32_t one) { return one != range.required; }) ||
      std::any_of(gang.asks().begin(), gang.asks().end(), selects_by_label) ||
      state.nodes_in(NodeStatus::kLost) > 0;  // which the shapes of a domain leave out; they may return
  const auto add_node = [&](WhenEmpty& nodes, NodeId id) {
    const NodeState& node = state.node(id);
    if (is_in_all(state, id, levels)) nodes.add(state.node_index().shape_of(id), node.spec);
  };
  if (range.required == node_level(state)) {
    const auto& shapes = state.node_index().shapes();
    const auto shape_holds = [&](const auto& one) {
      WhenEmpty node(gang.asks(), least);
      node.add(one.first, 1);
      return node.may_hold();
    };
    const auto node_holds = [&](const NodeState& one) {
      WhenEmpty node(gang.asks(), least);
      add_node(node, one.id);
      return node.may_hold();
    };
    return by_node ? std::any_of(state.nodes().begin(), state.nodes().end(), node_holds)
                   : std::any_of(shapes.begin(), shapes.end(), shape_holds);
  }
  const auto domains = state.topology().at_level(static_cast<std::size_t>(range.required));
  return std::any_of(domains.begin(), domains.end(), [&](DomainId id) {
    const Domain& domain = state.topology().domain(id);
    WhenEmpty nodes(gang.asks(), least);
    if (by_node) {
      for (const NodeId node : domain.nodes) add_node(nodes, node);
    } else {
      for (const auto& [shape, count] : domain.shapes) nodes.add(shape, count);
    }
    return nodes.may_hold();
  });
}

}  // namespace berth::sched

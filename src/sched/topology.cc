#include "sched/topology.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sched/fit_order.h"

namespace berth::sched {

using state::Domain;
using state::DomainRoom;
using state::NodeShape;
using state::NodeState;
using state::State;

namespace {

// How many tasks of the group a region has GPUs for; an upper bound of what fits.
std::int64_t slots_in(const TaskAsk& ask, const Domain& domain) {
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

std::int64_t slots_on(const TaskAsk& ask, const State& state, const NodeState& node) {
  const TaskRequest& request = ask.group.request;
  const bool allowed = node.takes_tasks() && ask.classes[state.node_index().class_of(node.id).index()];
  if (!allowed || !has_labels(ask.group, node.spec)) return 0;
  std::int64_t slots = ask.exclusive ? 1 : kUnlimited;
  if (request.cpu_milli > 0) slots = std::min(slots, node.available_cpu_milli() / request.cpu_milli);
  if (request.memory_mib > 0) slots = std::min(slots, node.available_memory_mib() / request.memory_mib);
  if (request.gpus == 0) return slots;
  std::array<std::int64_t, kMaxGpuModels> whole{};
  std::int64_t with_gpus = 0;
  for (const state::GpuSlot& gpu : node.gpus) {
    if ((ask.models >> gpu.model.index() & 1U) == 0) continue;
    if (request.is_share())
      with_gpus += gpu.available_milli() / request.gpu_milli;
    else if (gpu.available_milli() == kMilli && ++whole[gpu.model.index()] % request.gpus == 0)
      ++with_gpus;
  }
  return std::min(slots, with_gpus);
}

Counts slots_of(const Gang& gang, const Region& region) {
  Counts slots;
  for (std::size_t g = 0; g < gang.spec().groups.size(); ++g) {
    const std::int64_t here = region.node.valid()
                                  ? slots_on(gang.ask(g), gang.state(), gang.state().node(region.node))
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

// Milli-GPUs of the wanted tasks that the slots hold; a task without GPUs counts as one.
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
      const TaskAsk& ask = gang.ask(g);
      usable = usable || (ask.classes[room.node_class.index()] && (ask.models >> room.model.index() & 1U) != 0);
    }
    if (usable) milli += room.milli;
  }
  return milli;
}

bool is_none(const Counts& counts) {
  return std::all_of(counts.begin(), counts.end(), [](std::int32_t count) { return count == 0; });
}

// The gang's tasks, spread over the parts of a region by rule 4.
class Cut {
 public:
  Cut(Gang& gang, std::int32_t innermost) : gang_(gang), innermost_(innermost) {}

  // Adds as many of `wanted` as it can and takes them off.
  void fill(const Region& region, std::int32_t level, Counts& wanted) {
    if (level < innermost_) fill_parts(parts_of(region, level), wanted);
    for (std::size_t g = 0; g < wanted.size(); ++g) wanted[g] -= gang_.add(g, wanted[g], region);
  }

 private:
  struct Part {
    Region region;
    std::int32_t level = 0;
    Counts slots;
    std::int64_t all = 0;  // of the slots together
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

// All of it within the region, cut as little as possible below it.
bool place_in(Gang& gang, const Region& region, std::int32_t level, std::int32_t innermost, const Counts& counts) {
  std::size_t short_of = 0;
  if (level < innermost) {
    const std::size_t mark = gang.mark();
    Counts wanted = counts;
    Cut(gang, innermost).fill(region, level, wanted);
    if (is_none(wanted)) return true;
    gang.rollback_to(mark);  // tasks of different sizes may stand in each other's way
  }
  return gang.add_all(counts, region, short_of);
}

// The domains of a level that have GPUs for all, the one with the least room first.
std::vector<DomainId> candidates(const Gang& gang, std::int32_t level, const Counts& counts) {
  const state::TopologyIndex& topology = gang.state().topology();
  std::vector<std::pair<std::int64_t, DomainId>> by_room;
  for (const DomainId id : topology.at_level(static_cast<std::size_t>(level))) {
    if (holds_all(slots_of(gang, {id, {}}), counts)) by_room.emplace_back(available_in(gang, id), id);
  }
  std::stable_sort(by_room.begin(), by_room.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<DomainId> ids;
  for (const auto& [room, id] : by_room) ids.push_back(id);
  return ids;
}

// The domain of the level that the region lies in, if it lies in one.
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

// On the tightest node that holds all and lies in a domain of the required level: that domain.
std::optional<Region> place_on_a_node(Gang& gang, const Counts& counts, std::int32_t required) {
  std::size_t first = 0;
  while (first < counts.size() && counts[first] == 0) ++first;
  std::int64_t milli = 0;
  for (std::size_t g = 0; g < counts.size(); ++g) milli += counts[g] * gang.spec().groups[g].request.total_gpu_milli();
  if (first == counts.size() || milli > static_cast<std::int64_t>(kMaxGpusPerNode) * kMilli) return std::nullopt;
  FitOrder order(gang.state(), gang.ask(first), gang.work().nodes_scored);
  while (const auto node = order.next()) {
    const Region region{{}, *node};
    std::size_t short_of = 0;
    const auto wide = around(gang.state(), region, required);
    if (wide && holds_all(slots_of(gang, region), counts) && gang.add_all(counts, region, short_of)) return wide;
  }
  return std::nullopt;
}

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

std::optional<Region> place_by_topology(Gang& gang, const Counts& counts, const LevelRange& range) {
  const State& state = gang.state();
  for (std::int32_t level = range.preferred; level >= range.required; --level) {
    if (level == kAnywhere) {
      if (place_in(gang, {}, level, range.preferred, counts)) return Region{};
    } else if (level == node_level(state)) {
      if (auto wide = place_on_a_node(gang, counts, range.required)) return wide;
    } else {
      for (const DomainId id : candidates(gang, level, counts)) {
        const auto wide = around(state, {id, {}}, range.required);
        if (wide && place_in(gang, {id, {}}, level, range.preferred, counts)) return wide;
      }
    }
  }
  return std::nullopt;
}

Reason closest_domain(Gang& gang, const LevelRange& range) {
  const State& state = gang.state();
  Reason reason;
  reason.code = ReasonCode::kTopology;
  Counts least;
  for (const TaskGroup& group : gang.spec().groups) {
    least.push_back(group.least());
    reason.asked += group.least() * group.request.total_gpu_milli();
  }
  std::optional<std::tuple<std::int64_t, std::int64_t>> best;
  const auto consider = [&](const Region& region, std::int64_t room) {
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

bool some_domain_could_hold(const Gang& gang, const LevelRange& range) {
  const State& state = gang.state();
  const auto holds = [&](const auto& shapes) {
    for (std::size_t g = 0; g < gang.spec().groups.size(); ++g) {
      std::int64_t slots = 0;
      for (const auto& [shape, there] : shapes) {
        if (gang.ask(g).classes[shape.node_class.index()] && there > 0)
          slots += std::min<std::int64_t>(slots_when_empty(gang.ask(g), shape), gang.ask(g).group.count) * there;
      }
      if (slots < gang.ask(g).group.least()) return false;
    }
    return true;
  };
  if (range.required == node_level(state)) {
    const auto& shapes = state.node_index().shapes();
    return std::any_of(shapes.begin(), shapes.end(), [&](const auto& one) {
      return holds(std::array{std::pair(one.first, std::min<std::uint32_t>(one.second.there, 1))});
    });
  }
  const auto domains = state.topology().at_level(static_cast<std::size_t>(range.required));
  return std::any_of(domains.begin(), domains.end(),
                     [&](DomainId id) { return holds(state.topology().domain(id).shapes); });
}

}  // namespace berth::sched

#include "explain/capacity/capacity.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "explain/capacity/guarantee_coverage.h"
#include "sched/place/node_fit.h"
#include "sched/place/place.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::NodeState;
using state::State;

namespace {

// Two nodes are of one kind if these are equal.
struct KindKey {
  std::string pool;
  std::vector<std::string> models;  // of each GPU, sorted
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<Taint> taints;
  bool containers = false;
  auto operator<=>(const KindKey&) const = default;
};

KindKey key_of(const NodeSpec& spec) {
  KindKey key{spec.pool, {}, spec.cpu_milli, spec.memory_mib, spec.taints, spec.containers};
  for (const Gpu& gpu : spec.gpus) key.models.push_back(gpu.model);
  std::sort(key.models.begin(), key.models.end());
  return key;
}

std::string model_text(const KindKey& key) {
  std::string text;
  for (std::size_t i = 0; i < key.models.size(); ++i) {
    if (i > 0 && key.models[i] == key.models[i - 1]) continue;
    text += (text.empty() ? "" : "+") + key.models[i];
  }
  return text;
}

// The name of the domain that the node would be in at the level, or "".
std::string domain_name(const NodeSpec& spec, const std::vector<std::string>& levels, std::size_t level) {
  if (level < spec.topology.size() && !spec.topology[level].empty()) return spec.topology[level];
  const auto label =
      std::find_if(spec.labels.begin(), spec.labels.end(), [&](const auto& one) { return one.first == levels[level]; });
  return label == spec.labels.end() ? std::string() : label->second;
}

// A further node of the kind: the labels that all its nodes share, the domains that they share from the outermost level
// inwards, and healthy GPUs.
NodeSpec like_all(const State& state, const std::vector<NodeId>& nodes) {
  const std::vector<std::string>& levels = state.config().topology_levels;
  NodeSpec like = state.node(nodes.front()).spec;
  std::vector<std::string> domains;
  for (std::size_t l = 0; l < levels.size(); ++l) domains.push_back(domain_name(like, levels, l));
  std::size_t common = levels.size();
  for (const NodeId id : nodes) {
    const NodeSpec& spec = state.node(id).spec;
    std::erase_if(like.labels, [&](const auto& label) {
      return std::find(spec.labels.begin(), spec.labels.end(), label) == spec.labels.end();
    });
    for (std::size_t l = 0; l < common; ++l) {
      if (domain_name(spec, levels, l) != domains[l]) common = l;
    }
  }
  std::erase_if(like.labels, [&](const auto& label) {
    const auto level = std::find(levels.begin(), levels.end(), label.first);
    return level != levels.end() && static_cast<std::size_t>(level - levels.begin()) >= common;
  });
  domains.resize(common);
  like.topology = std::move(domains);
  like.name.clear();
  for (Gpu& gpu : like.gpus) {
    gpu.healthy = true;
    gpu.fenced = gpu.failed = false;
    gpu.fault.clear();
  }
  return like;
}

bool may_be_idle(const NodeState& node) {
  return node.status == NodeStatus::kReady && node.maintained == 0 && node.holders == 0 && node.foreign.gpus.empty();
}

// A job that is nominated on the node or will move there, or none().
JobId nominated_to(const State& state, NodeId node) {
  const auto there = [&](const std::vector<TaskPlacement>& places) {
    return std::any_of(places.begin(), places.end(), [&](const TaskPlacement& place) { return place.node == node; });
  };
  for (const JobId id : state.nominated()) {
    if (there(state.job(id)->nomination->placements)) return id;
  }
  for (const JobId id : state.running()) {
    const auto& stop = state.job(id)->attempt->stop;
    if (stop && there(stop->to)) return id;
  }
  return JobId::none();
}

std::map<NodeId, JobId> held_nodes(const State& state) {
  std::map<NodeId, JobId> held;
  for (const JobId id : state.reservations()) {
    for (const TaskPlacement& place : state.job(id)->reservation->placements) held.emplace(place.node, id);
  }
  return held;
}

// The jobs that need idle nodes: those about to start there, and pending jobs that could use one.
class Wanting {
 public:
  Wanting(const State& state, const std::vector<ScaleUpSearch::Asked>& asked) : state_(state) {
    for (const ScaleUpSearch::Asked& one : asked) {
      for (const TaskPlacement& place : one.places) starting_.emplace(place.node, one.job);
      if (!one.places.empty() || one.never) continue;
      const JobState& job = *state.job(one.job);
      for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
        asks_.emplace_back(one.job, task_requirements(state, job, g, kAllModels));
      }
    }
  }
  void add(const ScaleUpStarts& starts) { starting_.insert(starts.beside.begin(), starts.beside.end()); }

  // Nodes of one kind come one after the other: what one could not hold the next cannot either, unless their labels or
  // failed GPUs differ.
  void begin_kind() { refused_.assign(asks_.size(), false); }
  JobId of(const NodeState& node) {
    if (const auto found = starting_.find(node.id); found != starting_.end()) return found->second;
    if (!node.takes_tasks()) return JobId::none();
    const bool well = std::all_of(node.gpus.begin(), node.gpus.end(), [](const auto& gpu) { return gpu.usable(); });
    for (std::size_t i = 0; i < asks_.size(); ++i) {
      const auto& [job, ask] = asks_[i];
      if (refused_[i]) continue;
      if (could_hold(state_, ask, node)) return job;
      refused_[i] = well && !selects_by_label(ask);
    }
    return JobId::none();
  }

 private:
  const State& state_;
  std::map<NodeId, JobId> starting_;
  std::vector<std::pair<JobId, TaskRequirements>> asks_;
  std::vector<bool> refused_;
};

void sort_out(const State& state, Timestamp now, std::int64_t idle_for_ms, Wanting& wanting, Capacity& capacity) {
  const std::map<NodeId, JobId> held = held_nodes(state);
  for (NodeKind& kind : capacity.kinds) {
    wanting.begin_kind();
    for (IdleNode& idle : kind.idle) {
      const NodeState& node = state.node(idle.node);
      const auto keep = [&](KeptFor why, JobId job) {
        idle.kept_for = why;
        idle.job = job;
      };
      if (now - idle.since < idle_for_ms) {
        keep(KeptFor::kRecent, {});
      } else if (!node.tenants.empty()) {
        keep(KeptFor::kNominated, nominated_to(state, node.id));
      } else if (const auto hold = held.find(node.id); hold != held.end()) {
        keep(KeptFor::kReserved, hold->second);
      } else if (const JobId job = wanting.of(node); job.valid()) {
        keep(KeptFor::kWanted, job);
      }
    }
  }
}

// As many nodes of each kind as can be removed, the longest idle first, beside those of the kinds before it. Nodes that
// take no tasks back no guarantee anyway.
void keep_guaranteed(const State& state, Capacity& capacity) {
  GuaranteeCoverage guaranteed(state, GuaranteeCoverage::Of::kGuarantees);
  GuaranteeCoverage kept(state, GuaranteeCoverage::Of::kKeptBack);
  for (NodeKind& kind : capacity.kinds) {
    std::vector<IdleNode*> free;
    for (IdleNode& idle : kind.idle) {
      if (idle.kept_for == KeptFor::kNothing && state.node(idle.node).takes_tasks()) free.push_back(&idle);
    }
    // Nodes of a kind differ only by failed GPUs: those with the same failures are counted together.
    while (!free.empty()) {
      const auto healthy = [&](const IdleNode* idle) {
        std::map<GpuModelId, std::int64_t> count;
        for (const state::GpuSlot& gpu : state.node(idle->node).gpus) count[gpu.model] += gpu.usable() ? 1 : 0;
        return count;
      };
      const auto counted = healthy(free.front());
      const auto rest =
          std::stable_partition(free.begin(), free.end(), [&](const IdleNode* one) { return healthy(one) == counted; });
      const NodeState& one = state.node(free.front()->node);
      std::int64_t go = 0;
      std::int64_t too_many = (rest - free.begin()) + 1;
      while (too_many - go > 1) {
        const std::int64_t middle = (go + too_many) / 2;
        guaranteed.take(one, middle);
        kept.take(one, middle);
        (guaranteed.holds() && kept.holds() ? go : too_many) = middle;
        guaranteed.put_back(one, middle);
        kept.put_back(one, middle);
      }
      guaranteed.take(one, go);
      kept.take(one, go);
      std::for_each(free.begin() + go, rest, [](IdleNode* idle) { idle->kept_for = KeptFor::kGuaranteed; });
      free.erase(free.begin(), rest);
    }
  }
}

// The kinds with the most nodes, in the order of the kinds.
std::vector<std::size_t> most_common(const std::vector<std::vector<NodeId>>& members) {
  std::vector<std::size_t> kinds(members.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = i;
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](std::size_t a, std::size_t b) { return members[a].size() > members[b].size(); });
  if (kinds.size() > kMostKinds) kinds.resize(kMostKinds);
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

}  // namespace

std::size_t NodeKind::releasable() const {
  return static_cast<std::size_t>(
      std::count_if(idle.begin(), idle.end(), [](const IdleNode& one) { return one.kept_for == KeptFor::kNothing; }));
}

Capacity capacity_of(State& state, Timestamp now, std::int64_t idle_for_ms, const ScaleUpEffort& effort) {
  std::map<KindKey, std::vector<NodeId>> by_key;
  for (const NodeState& node : state.nodes()) by_key[key_of(node.spec)].push_back(node.id);
  Capacity capacity;
  std::vector<std::vector<NodeId>> members;
  for (auto& [key, nodes] : by_key) {
    NodeKind kind;
    const NodeState& first = state.node(nodes.front());
    kind.pool = first.pool;
    kind.model = model_text(key);
    kind.gpus = static_cast<std::int64_t>(key.models.size());
    kind.cpu_milli = key.cpu_milli;
    kind.memory_mib = key.memory_mib;
    kind.taints = first.spec.taints;
    kind.containers = key.containers;
    for (const NodeId id : nodes) {
      const NodeState& node = state.node(id);
      kind.nodes += node.status == NodeStatus::kLost ? 0 : 1;
      if (may_be_idle(node)) kind.idle.push_back({id, node.idle_since, KeptFor::kNothing, {}});
    }
    std::sort(kind.idle.begin(), kind.idle.end(), [](const IdleNode& a, const IdleNode& b) {
      return std::tie(a.since, a.node) < std::tie(b.since, b.node);
    });
    capacity.kinds.push_back(std::move(kind));
    members.push_back(std::move(nodes));
  }
  ScaleUpSearch further(state, now, effort);
  Wanting wanting(state, further.now());
  for (const std::size_t i : most_common(members)) {
    capacity.kinds[i].wanted = further.with(like_all(state, members[i]));
    if (capacity.kinds[i].wanted) wanting.add(*capacity.kinds[i].wanted);
  }
  sort_out(state, now, idle_for_ms, wanting, capacity);
  keep_guaranteed(state, capacity);
  const bool some_lack = std::any_of(further.now().begin(), further.now().end(),
                                     [](const ScaleUpSearch::Asked& one) { return one.places.empty(); });
  capacity.complete = further.complete() && (members.size() <= kMostKinds || !some_lack);
  return capacity;
}

}  // namespace berth::explain

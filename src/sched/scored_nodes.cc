#include "sched/scored_nodes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "sched/fit_order.h"

namespace berth::sched {

using state::GroupKey;
using state::NodeClassId;
using state::NodeGroup;
using state::NodeGroups;
using state::NodeIndex;
using state::State;

namespace {

constexpr std::size_t kNoModel = kMaxGpuModels;  // tasks that want no GPU: all nodes are one kind to them
constexpr std::size_t kGroupsLookedAt = 1024;    // at each end, once something has been found

bool takes(const State& state, const TaskAsk& ask, NodeId node, std::int64_t memory_mib) {
  return memory_mib >= ask.group.request.memory_mib && passes(ask, state.node(node));
}

// Walks the groups of all buckets in the order of what is available, from the tightest up or from the loosest down.
template <class Iterator>
class Merged {
 public:
  void add(Iterator begin, Iterator end) {
    if (begin != end) ends_.push_back({begin, end});
  }
  const NodeGroups::value_type* next(bool upwards) {
    Part* best = nullptr;
    for (Part& part : ends_) {
      if (part.at == part.end) continue;
      if (best == nullptr) {
        best = &part;
        continue;
      }
      const std::int64_t here = part.at->first.available_milli;
      const std::int64_t there = best->at->first.available_milli;
      if (upwards ? here < there : here > there) best = &part;
    }
    if (best == nullptr) return nullptr;
    return &*best->at++;
  }

 private:
  struct Part {
    Iterator at;
    Iterator end;
  };
  std::vector<Part> ends_;
};

class Gathering {
 public:
  Gathering(const State& state, const TaskAsk& ask, const std::set<NodeId>& without, std::uint64_t& scored)
      : state_(state), ask_(ask), without_(without), scored_(scored) {
    if (ask.group.request.gpus == 0) {
      kinds_ = 1;
      return;
    }
    for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
      const GpuModelId model(static_cast<std::uint16_t>(m));
      bool there = false;
      for (std::size_t c = 0; c < ask.classes.size() && (ask.models >> m & 1U) != 0; ++c) {
        const NodeClassId id(static_cast<std::uint16_t>(c));
        there = there || (ask.classes[c] && state.node_index().available_milli(id, model) > 0);
      }
      if (there) ++kinds_;
    }
  }

  std::vector<NodeId> run() && {
    const TaskRequest& request = ask_.group.request;
    const std::size_t whole = request.is_share() ? 0 : static_cast<std::size_t>(request.gpus);
    const GroupKey least{request.total_gpu_milli(), NodeClassId(0), state::GpuFills(state::NodeState())};
    Merged<NodeGroups::const_iterator> upwards;
    Merged<NodeGroups::const_reverse_iterator> downwards;
    for (std::size_t w = whole; w < NodeIndex::kBuckets; ++w) {
      const NodeGroups& groups = state_.node_index().with_whole_gpus(w);
      upwards.add(groups.lower_bound(least), groups.end());
      downwards.add(groups.rbegin(), NodeGroups::const_reverse_iterator(groups.lower_bound(least)));
    }
    gather(upwards, true);
    gather(downwards, false);
    return std::move(found_);
  }

 private:
  template <class Groups>
  void gather(Groups& groups, bool upwards) {
    std::array<std::size_t, kMaxGpuModels + 1> many{};
    std::size_t full = 0;
    std::size_t looked_at = 0;
    while (const auto* one = groups.next(upwards)) {
      if (full == kinds_ || (looked_at++ >= kGroupsLookedAt && !found_.empty())) return;
      ++scored_;
      std::size_t& count = many[kind_of(one->first)];
      if (count == kScoredAtEachEnd || !group_fits(ask_, one->first, one->second)) continue;
      if (upwards)
        add_tight(one->second, count);
      else
        add_loose(one->second, count);
      if (count == kScoredAtEachEnd) ++full;
    }
  }

  std::size_t kind_of(const GroupKey& key) const {
    return ask_.group.request.gpus == 0 || key.gpus.size() == 0 ? kNoModel : key.gpus[0].model.index();
  }

  // One node for each amount of CPU.
  void add_tight(const NodeGroup& group, std::size_t& count) {
    const auto& members = group.memory;
    std::int64_t cpu = ask_.group.request.cpu_milli;
    for (auto at = members.lower_bound({cpu, NodeId(0)}); at != members.end() && count < kScoredAtEachEnd;) {
      cpu = at->first.first;
      if (!offer(at->first.second, at->second)) {
        ++at;
        continue;
      }
      ++count;
      at = members.lower_bound({cpu + 1, NodeId(0)});
    }
  }
  void add_loose(const NodeGroup& group, std::size_t& count) {
    const auto& members = group.memory;
    const std::int64_t least = ask_.group.request.cpu_milli;
    auto end = members.end();
    while (end != members.begin() && count < kScoredAtEachEnd) {
      const std::int64_t cpu = std::prev(end)->first.first;
      if (cpu < least) return;
      const auto begin = members.lower_bound({cpu, NodeId(0)});
      for (auto at = begin; at != end; ++at) {
        if (!offer(at->first.second, at->second)) continue;
        ++count;
        break;
      }
      end = begin;
    }
  }

  bool offer(NodeId node, std::int64_t memory_mib) {
    ++scored_;
    if (without_.contains(node) || !takes(state_, ask_, node, memory_mib)) return false;
    found_.push_back(node);
    return true;
  }

  const State& state_;
  const TaskAsk& ask_;
  const std::set<NodeId>& without_;
  std::uint64_t& scored_;
  std::size_t kinds_ = 0;
  std::vector<NodeId> found_;
};

}  // namespace

std::vector<NodeId> nodes_to_score(const State& state, const TaskAsk& ask, const std::set<NodeId>& without,
                                   std::uint64_t& scored) {
  return Gathering(state, ask, without, scored).run();
}

std::optional<NodeId> next_alike(const State& state, const TaskAsk& ask, NodeId node, const std::set<NodeId>& without) {
  const NodeGroup& group = state.node_index().group_of(node);
  const std::int64_t cpu = state.node(node).available_cpu_milli();
  const auto& members = group.memory;
  for (auto at = members.upper_bound({cpu, node}); at != members.end() && at->first.first == cpu; ++at) {
    if (!without.contains(at->first.second) && takes(state, ask, at->first.second, at->second)) return at->first.second;
  }
  return std::nullopt;
}

}  // namespace berth::sched

#include "sched/place/node_sampling.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <iterator>
#include <limits>

#include "sched/place/image_holders.h"
#include "sched/place/node_iterator.h"

namespace berth::sched {

using state::GroupKey;
using state::NodeClassId;
using state::NodeGroup;
using state::NodeGroups;
using state::Reach;
using state::State;

namespace {

constexpr std::size_t kNoModel = kMaxGpuModels;  // tasks without GPUs: all nodes are of one kind
constexpr std::size_t kMixed = kNoModel + 1;     // lists of nodes with GPUs of several models
constexpr std::size_t kGroupsLookedAt = 1024;    // at each end, once a node has been found

bool contains(std::span<const NodeId> nodes, NodeId node) {
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

bool takes(const State& state, const TaskRequirements& ask, NodeId node, std::int64_t memory_mib) {
  return memory_mib >= ask.group.request.memory_mib && passes(ask, state.node(node));
}

// Walks groups by what is available, from the tightest up or from the loosest down. Of equal groups those with fewer
// whole GPUs come first.
template <class Iterator>
class Merged {
 public:
  explicit Merged(bool upwards) : upwards_(upwards) {}

  // `kind` is the kind of all nodes in these groups, or kMixed.
  void add(std::size_t whole_gpus, std::size_t kind, Iterator begin, Iterator end) {
    if (begin == end) return;
    parts_.push_back({begin->first.available_milli, whole_gpus, kind, begin, end});
    std::push_heap(parts_.begin(), parts_.end(), Later{upwards_});
  }
  bool empty() const { return parts_.empty(); }
  // The kind of the list that has the next group.
  std::size_t kind() const { return parts_.front().kind; }
  // Skips the rest of that list.
  void drop() {
    parts_.front() = parts_.back();
    parts_.pop_back();
    if (!parts_.empty()) sink_front();
  }
  const NodeGroups::value_type& next() {
    Part& part = parts_.front();
    const NodeGroups::value_type& next = *part.at;
    if (++part.at == part.end) {
      drop();
      return next;
    }
    part.available_milli = part.at->first.available_milli;
    sink_front();
    return next;
  }

 private:
  struct Part {
    std::int64_t available_milli = 0;  // of its next group
    std::size_t whole_gpus = 0;
    std::size_t kind = kMixed;
    Iterator at;
    Iterator end;
  };
  struct Later {
    bool upwards = true;
    bool operator()(const Part& a, const Part& b) const {
      if (a.available_milli != b.available_milli) return (a.available_milli > b.available_milli) == upwards;
      if (a.whole_gpus != b.whole_gpus) return a.whole_gpus > b.whole_gpus;
      return (a.at->first > b.at->first) == upwards;
    }
  };

  // Moves the front to its new place. It mostly stays near the front, where a pop and a push would go all the way.
  void sink_front() {
    const Later later{upwards_};
    const Part part = parts_.front();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < parts_.size(); child = 2 * hole + 1) {
      if (child + 1 < parts_.size() && later(parts_[child], parts_[child + 1])) ++child;
      if (!later(part, parts_[child])) break;
      parts_[hole] = parts_[child];
      hole = child;
    }
    parts_[hole] = part;
  }

  bool upwards_;
  std::vector<Part> parts_;  // a heap
};

class Gathering {
 public:
  Gathering(const State& state, const TaskRequirements& ask, std::span<const NodeId> without, std::uint64_t& scored)
      : state_(state), ask_(ask), without_(without), scored_(scored) {
    if (ask.group.request.gpus == 0) {
      kinds_.set(kNoModel);
      return;
    }
    for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
      const GpuModelId model(static_cast<std::uint16_t>(m));
      for (std::size_t c = 0; c < ask.classes.size() && (ask.models >> m & 1U) != 0; ++c) {
        const NodeClassId id(static_cast<std::uint16_t>(c));
        if (ask.classes[c] && state.node_index().available_milli(id, model) > 0) kinds_.set(m);
      }
    }
  }

  std::vector<NodeId> run() && {
    Merged<NodeGroups::const_iterator> upwards(true);
    for_each_list([&](std::size_t whole_gpus, std::size_t kind, const NodeGroups& groups) {
      upwards.add(whole_gpus, kind, groups.begin(), groups.end());
    });
    gather(upwards, true);
    // From the loose end only kinds are needed that the tight end did not exhaust. If all lists were walked, all nodes
    // of the kinds that are not full have been met, so only full kinds may have looser nodes.
    done_ = upwards.empty() ? ~done_ : Kinds();
    Merged<NodeGroups::const_reverse_iterator> downwards(false);
    for_each_list([&](std::size_t whole_gpus, std::size_t kind, const NodeGroups& groups) {
      downwards.add(whole_gpus, kind, groups.rbegin(), groups.rend());
    });
    gather(downwards, false);
    add_where_the_image_is();
    std::sort(found_.begin(), found_.end());  // in a small fleet both ends meet the same nodes
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return std::move(found_);
  }

 private:
  using Kinds = std::bitset<kNoModel + 1>;

  // Visits the lists that may have a group for the task.
  template <class Visit>
  void for_each_list(Visit&& visit) const {
    for (const state::ModelGroups& part : state_.node_index().groups()) {
      const std::size_t kind = kind_of(part);
      if (!may_fit(ask_, part) || is_done(kind) || (kind != kMixed && !kinds_[kind])) continue;
      for (std::size_t step = Reach::of(ask_.group.request).step(); step < Reach::kSteps; ++step) {
        visit(Reach(step).whole_gpus(), kind, part.by_reach[step]);
      }
    }
  }

  template <class Groups>
  void gather(Groups& groups, bool upwards) {
    std::array<std::size_t, kNoModel + 1> many{};
    std::size_t missing = kinds_.count();
    std::size_t looked_at = 0;
    while (missing != 0 && !groups.empty()) {
      if (is_done(groups.kind())) {
        groups.drop();
        continue;
      }
      if (looked_at++ >= kGroupsLookedAt && !found_.empty()) return;
      ++scored_;
      const auto& [key, group] = groups.next();
      const std::size_t kind = kind_of(key);
      if (done_[kind] || !group_fits(ask_, key)) continue;
      std::size_t& count = many[kind];
      if (upwards)
        add_tight(group, count);
      else
        add_loose(group, count);
      if (count < kScoredAtEachEnd) continue;
      --missing;
      done_.set(kind);
    }
  }

  bool is_done(std::size_t kind) const { return kind != kMixed && done_[kind]; }

  std::size_t kind_of(const state::ModelGroups& part) const {
    if (ask_.group.request.gpus == 0) return kNoModel;
    return std::has_single_bit(part.models) ? static_cast<std::size_t>(std::countr_zero(part.models)) : kMixed;
  }

  std::size_t kind_of(const GroupKey& key) const {
    return ask_.group.request.gpus == 0 || key.gpus.size() == 0 ? kNoModel : key.gpus[0].model.index();
  }

  // Takes one node for each amount of CPU.
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
    if (contains(without_, node) || !takes(state_, ask_, node, memory_mib)) return false;
    found_.push_back(node);
    return true;
  }

  void add_where_the_image_is() {
    const ImageHolders holders(state_, ask_);
    if (!holders.matter()) return;
    for (std::size_t i = found_.size(); i-- > 0;) {
      if (has_image(ask_, found_[i])) continue;
      const auto alike = holders.alike(found_[i], NodeId(0), scored_, [&](NodeId node, std::int64_t memory_mib) {
        return !contains(without_, node) && takes(state_, ask_, node, memory_mib);
      });
      if (alike) found_.push_back(*alike);
    }
  }

  const State& state_;
  const TaskRequirements& ask_;
  std::span<const NodeId> without_;
  std::uint64_t& scored_;
  Kinds kinds_;  // kinds that have something available
  Kinds done_;   // kinds that need no more nodes
  std::vector<NodeId> found_;
};

}  // namespace

std::vector<NodeId> nodes_to_score(const State& state, const TaskRequirements& ask, std::span<const NodeId> without,
                                   std::uint64_t& scored) {
  return Gathering(state, ask, without, scored).run();
}

std::optional<NodeId> next_alike(const State& state, const TaskRequirements& ask, NodeId node,
                                 std::span<const NodeId> without) {
  const NodeGroup& group = state.node_index().group_of(node);
  const std::int64_t cpu = state.node(node).available_cpu_milli();
  const auto& members = group.memory;
  const auto is_next = [&](NodeId other, std::int64_t memory_mib) {
    return !contains(without, other) && takes(state, ask, other, memory_mib);
  };
  auto at = members.upper_bound({cpu, node});
  if (has_image(ask, node)) {
    std::uint64_t looked_at = 0;
    const NodeId after(node.value() + 1);
    if (const auto other = ImageHolders(state, ask).alike(node, after, looked_at, is_next)) return other;
    at = members.lower_bound({cpu, NodeId(0)});  // earlier nodes without the image were not taken
  }
  for (; at != members.end() && at->first.first == cpu; ++at) {
    if (is_next(at->first.second, at->second)) return at->first.second;
  }
  return std::nullopt;
}

}  // namespace berth::sched

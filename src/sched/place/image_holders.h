#pragma once
// Image holders: the nodes of a group of the node index that have a task's image. If few nodes of the fleet have it,
// these are listed. If many have it, a walk over the group soon finds one. So the index stores no image holders by
// group.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "sched/place/node_fit.h"
#include "state/node_index.h"
#include "state/state.h"

namespace berth::sched {

inline constexpr std::size_t kFewHolders = 256;

class ImageHolders {
 public:
  using Members = state::NodeGroup::Members;
  using Listed = std::vector<Members::const_iterator>;

  ImageHolders(const state::State& state, const TaskRequirements& ask) : state_(state), ask_(ask) {}

  // Returns true if images are looked at and some node has this one.
  bool matter() const { return ask_.image_on != nullptr; }
  bool are_few() const { return ask_.image_on->size() <= kFewHolders; }

  // Returns the holders in the group with at least so much CPU left, the one with the most first. `scored` counts the
  // nodes looked at.
  Listed in(const state::NodeGroup& group, std::int64_t least_cpu_milli, std::uint64_t& scored) const;

  // Returns the first holder, from id `first` on, that is in the same group as `node`, has as much CPU left, and for
  // which `takes(node, memory)` is true.
  template <class Takes>
  std::optional<NodeId> alike(NodeId node, NodeId first, std::uint64_t& scored, Takes&& takes) const {
    const state::NodeGroup& group = state_.node_index().group_of(node);
    const std::int64_t cpu = state_.node(node).available_cpu_milli();
    if (are_few()) {
      Listed listed = in(group, cpu, scored);
      for (; !listed.empty() && listed.back()->first.first == cpu; listed.pop_back()) {
        const auto& [key, memory] = *listed.back();
        if (key.second >= first && takes(key.second, memory)) return key.second;
      }
      return std::nullopt;
    }
    const auto& members = group.memory;
    for (auto at = members.lower_bound({cpu, first}); at != members.end() && at->first.first == cpu; ++at) {
      ++scored;
      if (has_image(ask_, at->first.second) && takes(at->first.second, at->second)) return at->first.second;
    }
    return std::nullopt;
  }

 private:
  const state::State& state_;
  const TaskRequirements& ask_;
};

}  // namespace berth::sched

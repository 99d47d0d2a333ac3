#pragma once
// What nodes would hold, were they empty, of tasks of several groups at once: whether a gang can never be there.
//
// Each set of the groups is compared with the nodes that it may use: how many of its tasks one node could hold,
// smallest first in each dimension by itself, and what GPUs, CPU and memory these nodes have in sum. Of each two groups
// what one node could hold of both at once is weighted in several ways. Each of these is a
// relaxation of the packing (of bin packing, Martello and Toth, "Knapsack Problems" 1990, chapter 8): what it says is
// never is never, and what it does not say may still be.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sched/place/node_fit.h"

namespace berth::sched {

class WhenEmpty {
 public:
  using Room = std::array<std::int64_t, 3>;  // GPUs in thousandths, CPU in thousandths, memory in MiB

  // So many tasks of each group, which outlive it.
  WhenEmpty(std::span<const TaskRequirements> asks, std::span<const std::int32_t> counts);

  // So many nodes of the shape, whose labels nobody asks for.
  void add(const state::NodeShape& shape, std::int64_t nodes) { nodes_[{all_, shape}] += nodes; }
  // One node, of this shape, for those groups whose labels it has.
  void add(const state::NodeShape& shape, const NodeSpec& node);
  // All nodes that are not lost.
  void add_fleet(const state::State& state);

  // False: the tasks can never all be on these nodes.
  bool may_hold() const;

 private:
  using Groups = std::uint64_t;  // bit g: group g; those behind the 64th are as if they asked nothing
  bool may_hold(Groups set) const;
  std::int64_t tasks_on(const state::NodeShape& shape, Groups set) const;
  bool may_hold_both(std::size_t a, std::size_t b) const;
  std::int64_t beside(std::size_t a, std::int64_t tasks, std::size_t b, std::int64_t most, const Room& room) const;

  std::span<const TaskRequirements> asks_;
  std::span<const std::int32_t> counts_;
  Groups all_ = 0;
  std::map<std::pair<Groups, state::NodeShape>, std::int64_t> nodes_;  // by the groups whose labels they have
};

}  // namespace berth::sched

#pragma once
// Feasibility: whether a gang with several groups could ever fit, if all nodes were empty, their failed GPUs healthy
// and lost nodes back. It only proves "never"; anything else may still fail.
//
// Each set of the groups is compared with the nodes that it may use (of more than four groups: each group, and all
// together). One comparison counts how many of the tasks one node could hold, dimension by dimension, smallest tasks
// first. The other sums the GPUs, CPU and memory of these nodes. For each pair of groups, what one node can hold of
// both at once is compared under several weights. Each comparison is a relaxation of the packing (of bin packing,
// Martello and Toth, "Knapsack Problems" 1990, chapter 8). So "never" is certain.

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

  // `counts` tasks of each group. Both arguments must outlive this object.
  WhenEmpty(std::span<const TaskRequirements> asks, std::span<const std::int32_t> counts);

  // Adds nodes of the shape for all groups. For fleets where no group selects by label.
  void add(const state::NodeShape& shape, std::int64_t nodes) { nodes_[{all_, healed(shape)}] += nodes; }
  // Adds one node of the shape, for the groups whose labels it has.
  void add(const state::NodeShape& shape, const NodeSpec& node);
  // Adds all nodes.
  void add_fleet(const state::State& state);

  // Returns false if the tasks can never all be on these nodes.
  bool may_hold() const;

 private:
  using Groups = std::uint64_t;  // bit g: group g; groups from the 64th on are ignored
  bool may_hold(Groups set) const;
  std::int64_t tasks_on(const state::NodeShape& shape, Groups set) const;
  bool may_hold_both(std::size_t a, std::size_t b) const;
  std::int64_t beside(std::size_t a, std::int64_t tasks, std::size_t b, std::int64_t most, const Room& room) const;

  std::span<const TaskRequirements> asks_;
  std::span<const std::int32_t> counts_;
  Groups all_ = 0;
  std::map<std::pair<Groups, state::NodeShape>, std::int64_t>
      nodes_;  // number of nodes, by the groups whose labels they have
};

}  // namespace berth::sched

#pragma once
// FragmentationIndex: how well the idle resources of the fleet serve the requests that are expected, kept current node
// by node. It gives the fragmentation gauge and the score of a placement. The mix of requests is part of the state: it
// is learned from submitted jobs and saved in checkpoints. All other values follow from the mix and from what is
// available on the nodes.
//
// Values are computed on demand, once for all nodes with equal free resources, and cached; no answer depends on the
// cache. Changed nodes are collected until then, because a transaction changes many nodes and puts them back.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/ids.h"
#include "state/fragmentation/mix.h"
#include "state/fragmentation/node_table.h"
#include "state/fragmentation/node_value.h"
#include "state/fragmentation/shape.h"
#include "state/node_state.h"

namespace berth::state {

// A node as the score sees it. All its GPUs count as one model, that of the first GPU. Its CPU is rounded down to whole
// units, each 1/32 of the node's CPU.
struct SeenFree {
  fragmentation::NodeFree free;
  std::int64_t cpu_rest = 0;  // CPU beyond whole units
  bool operator==(const SeenFree&) const = default;
};
// Returns the node as the score sees it. `milli` is what is left of each GPU, in their order on the node.
SeenFree seen_free(const NodeState& node, std::int64_t cpu_milli, std::span<const std::int32_t> milli);

class FragmentationIndex {
 public:
  FragmentationIndex() : table_(fragmentation::Mix(0)) {}

  // Adds `times` such requests to the mix.
  void observe(const fragmentation::Request& request, std::int64_t times);
  // Adds the node, or updates it after a change of what is available on it, or of whether it takes tasks.
  void refresh(const NodeState& node);
  // Removes the last node: a transaction that added it is rolled back.
  void forget_last();

  const fragmentation::Mix& mix() const { return table_.mix(); }
  fragmentation::Mix::Saved save() const { return table_.mix().save(); }
  bool load(const fragmentation::Mix::Saved& saved);

  // idle_milli() returns the idle milli-GPUs on nodes that take tasks. unusable_milli() returns how many of these a
  // request cannot use, as the weighted mean over the requests of the mix: F of the FGD paper (Weng et al., ATC'23,
  // section 4.1). unusable_milli() is 0 until a job has been submitted.
  std::int64_t idle_milli() const;
  std::int64_t unusable_milli() const;

  // Returns true if the index agrees with these nodes.
  bool describes(std::span<const NodeState> nodes) const;

 private:
  friend class PlacementLoss;
  using Table = fragmentation::NodeTable;
  struct Seen {
    SeenFree seen;
    bool there = false;    // the node takes tasks
    bool changed = false;  // it changed since it was last counted
    bool counted = false;  // it is counted in the summary, as `id`
    Table::Id id = 0;
  };
  // Cached node states at most; or four for each node, if that is more.
  static constexpr std::size_t kRemembered = 1 << 16;

  void catch_up() const;
  void count(Table::Id id, int sign) const;
  void forget() const;
  void sum_up_again();

  std::vector<Seen> mutable nodes_;  // by NodeId
  std::vector<std::uint32_t> mutable changed_;
  Table mutable table_;
  fragmentation::FleetSummary mutable summary_;
  std::int64_t mutable unusable_ = 0;
  bool mutable summed_ = true;  // all counted nodes are counted by the current mix
};

// PlacementLoss: what one placement of a request costs the fleet, in expected milli-GPUs: the value of the node before
// it minus the value after it. Requires that neither the nodes nor the mix change while it is used.
class PlacementLoss {
 public:
  PlacementLoss(const FragmentationIndex& index, const fragmentation::Request& request);

  // A node before the request is placed, and its value.
  struct Before {
    fragmentation::NodeTable::Id id = 0;
    std::int64_t cpu_rest = 0;
    std::int64_t value = 0;
  };
  // Returns the node as the state has it.
  Before before(NodeId node) const;
  // Returns a node with other free resources than in the state.
  Before before(const SeenFree& node) const;
  // Returns the loss of the request on the node. `gpu_free` is what is available on the GPU on which a share is placed.
  std::int64_t on(const Before& node, std::int32_t gpu_free) const;

 private:
  Before before(fragmentation::NodeTable::Id id, std::int64_t cpu_rest) const;

  const FragmentationIndex& index_;
  fragmentation::NodeTable::RequestId id_ = 0;
  std::vector<std::int64_t> prices_;
};

}  // namespace berth::state

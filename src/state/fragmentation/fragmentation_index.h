#pragma once
// What the fleet is worth to the mix of requests that arrives, kept current node by node: the gauge of fragmentation
// and the score of a placement. The mix is state: it is folded from what is submitted and saved. Everything else
// follows from it and from what is available on the nodes.
//
// Values are worked out when somebody asks, once for all nodes that look alike, and remembered; no answer depends on
// what is remembered. Nodes that have changed are gathered until then, because a trial changes many that it puts back.

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

// What the score sees of a node: its GPUs as one model, that of the first, and its CPU in whole 32nds of all of it.
struct SeenFree {
  fragmentation::NodeFree free;
  std::int64_t cpu_rest = 0;  // beyond whole units
  bool operator==(const SeenFree&) const = default;
};
// `milli` is what is left of each GPU, in their order on the node.
SeenFree seen_free(const NodeState& node, std::int64_t cpu_milli, std::span<const std::int32_t> milli);

class FragmentationIndex {
 public:
  FragmentationIndex() : table_(fragmentation::Mix(0)) {}

  // So many such requests were submitted.
  void observe(const fragmentation::Request& request, std::int64_t times);
  // The node is new, or what is available on it or whether it takes tasks has changed.
  void refresh(const NodeState& node);
  // The last node was there for a trial only.
  void forget_last();

  const fragmentation::Mix& mix() const { return table_.mix(); }
  fragmentation::Mix::Saved save() const { return table_.mix().save(); }
  bool load(const fragmentation::Mix::Saved& saved);

  // What is idle on nodes that take tasks; and what of it a request drawn from the mix is expected to be unable to use:
  // F of the FGD paper (Weng et al., ATC'23, section 4.1). The latter is 0 until something has been submitted.
  std::int64_t idle_milli() const;
  std::int64_t unusable_milli() const;

  // Names what contradicts the nodes, or nothing.
  bool describes(std::span<const NodeState> nodes) const;

 private:
  friend class PlacementLoss;
  using Table = fragmentation::NodeTable;
  struct Seen {
    SeenFree seen;
    bool there = false;    // it takes tasks
    bool changed = false;  // since it was last counted
    bool counted = false;  // in the summary, as `id`
    Table::Id id = 0;
  };
  static constexpr std::size_t kRemembered = 1 << 16;  // node states, at most (and four for each node)

  void catch_up() const;
  void count(Table::Id id, int sign) const;
  void forget() const;
  void sum_up_again();

  std::vector<Seen> mutable nodes_;  // by NodeId
  std::vector<std::uint32_t> mutable changed_;
  Table mutable table_;
  fragmentation::FleetSummary mutable summary_;
  std::int64_t mutable unusable_ = 0;
  bool mutable summed_ = true;  // nobody is counted yet, or everybody in terms of the mix as it is
};

// What it costs the fleet, in expected milli-GPUs, to put one request here or there: the value of the node before less
// its value after. Good while neither nodes nor mix change.
class PlacementLoss {
 public:
  PlacementLoss(const FragmentationIndex& index, const fragmentation::Request& request);

  // A node without the request, and what it is worth.
  struct Before {
    fragmentation::NodeTable::Id id = 0;
    std::int64_t cpu_rest = 0;
    std::int64_t value = 0;
  };
  // As the state has it.
  Before before(NodeId node) const;
  // In another state by now.
  Before before(const SeenFree& node) const;
  // `gpu_free` is what is available on the GPU that a share is put on.
  std::int64_t on(const Before& node, std::int32_t gpu_free) const;

 private:
  Before before(fragmentation::NodeTable::Id id, std::int64_t cpu_rest) const;

  const FragmentationIndex& index_;
  fragmentation::NodeTable::RequestId id_ = 0;
  std::vector<std::int64_t> prices_;
};

}  // namespace berth::state

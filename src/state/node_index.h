#pragma once
// The nodes as placement looks at them: grouped by what makes two of them interchangeable.
//
// A group holds the schedulable nodes of one class (pool, taints, containers) whose GPUs are in the same state: the
// same multiset of (model, available share, sharing trust domain). GPU fit is decided once per group; inside it the
// nodes stand in the order of their available CPU, so that the tightest node which still fits is found by a lookup.
// Memory is filtered on the way. Groups are kept by the GPU models of their nodes and by their reach, the most that one
// task could have of them: so many whole GPUs of one model, or else so large a share of one. So a task meets only
// groups that have what it asks.
//
// Labels are no part of the class: a fleet where each node carries its own name as a label would have as many classes
// as nodes. Whoever selects by label filters the members. Nor are images, of which each node may have others: who would
// rather be where its image is looks for it among the members (sched/place/image_holders.h).

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "model/ids.h"
#include "model/node.h"
#include "model/resources.h"
#include "state/node_state.h"

namespace berth::state {

using NodeClassId = StrongId<struct NodeClassTag, std::uint16_t>;

// What tells nodes apart besides what is free on them.
struct NodeClass {
  std::uint32_t pool = 0;
  std::vector<Taint> taints;
  bool containers = false;  // whether it runs them
  bool operator==(const NodeClass&) const = default;
};

// One GPU of a group: its model, the share that is available, and whose shares run on it or, where none does, are
// promised there.
struct GpuFill {
  GpuModelId model;
  std::uint16_t available_milli = 0;
  TrustDomainId share_domain;
  MigSlices taken = 0;  // of one that is cut: bound or promised
  bool operator==(const GpuFill&) const = default;
};

// The GPUs of a node in canonical order.
class GpuFills {
 public:
  explicit GpuFills(const NodeState& node);
  std::size_t size() const { return count_; }
  GpuFill operator[](std::size_t i) const {
    const std::uint64_t bits = packed_[i];
    return {GpuModelId(static_cast<std::uint16_t>(bits >> 32 & 0xFFFFU)),
            static_cast<std::uint16_t>(bits >> 16 & 0xFFFFU), TrustDomainId(static_cast<std::uint16_t>(bits & 0xFFFFU)),
            static_cast<MigSlices>(bits >> 48)};
  }
  auto operator<=>(const GpuFills&) const = default;

 private:
  std::array<std::uint64_t, kMaxGpusPerNode> packed_{};
  std::size_t count_ = 0;
};

struct GroupKey {
  std::int64_t available_milli = 0;  // of all GPUs together; first, because best fit wants the least
  NodeClassId node_class;
  GpuFills gpus;
  auto operator<=>(const GroupKey&) const = default;
};

struct NodeGroup {
  using Members = std::map<std::pair<std::int64_t, NodeId>, std::int64_t>;
  using Place = Members::node_type;
  Members memory;  // by (available CPU, node): available MiB
  bool operator==(const NodeGroup&) const = default;
};

using NodeGroups = std::map<GroupKey, NodeGroup>;

// Counts what one task could have of a node, in steps: shares below one GPU by eighths, then whole GPUs of one model.
class Reach {
 public:
  static constexpr std::size_t kShares = 8;
  static constexpr std::size_t kSteps = kShares + kMaxGpusPerNode;

  static Reach of(std::size_t whole_gpus, std::int64_t share_milli) {
    if (whole_gpus > 0) return Reach(kShares + whole_gpus - 1);
    return Reach(static_cast<std::size_t>(share_milli) * kShares / kMilli);
  }
  // What a task needs that asks the same.
  static Reach of(const TaskRequest& request) {
    return request.is_share() ? of(0, request.gpu_milli) : of(static_cast<std::size_t>(request.gpus), 0);
  }
  explicit Reach(std::size_t step) : step_(step) {}

  std::size_t step() const { return step_; }
  std::size_t whole_gpus() const { return step_ < kShares ? 0 : step_ - kShares + 1; }
  // The least that a node of this reach has available.
  std::int64_t least_milli() const {
    return step_ < kShares ? static_cast<std::int64_t>(step_) * kMilli / static_cast<std::int64_t>(kShares)
                           : static_cast<std::int64_t>(whole_gpus()) * kMilli;
  }

 private:
  std::size_t step_ = 0;
};

// The groups of nodes with GPUs of these models (bit m: model m), by their reach; in each the tightest first.
struct ModelGroups {
  std::uint32_t models = 0;
  std::array<NodeGroups, Reach::kSteps> by_reach;
};

// The GPUs of one model in one NUMA domain of a node.
struct NumaPart {
  std::uint8_t model = 0;
  std::uint8_t all = 0;
  std::uint8_t healthy = 0;
  auto operator<=>(const NumaPart&) const = default;
};

// Nodes that would be alike if they were empty.
struct NodeShape {
  NodeClassId node_class;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::array<std::uint8_t, kMaxGpuModels> gpus{};  // healthy ones, by model
  std::array<NumaPart, kMaxGpusPerNode> numa{};    // in descending order; the rest is empty
  std::uint8_t numa_domains = 0;                   // that have healthy GPUs
  auto operator<=>(const NodeShape&) const = default;
};
struct ShapeCount {
  std::uint32_t known = 0;  // all nodes of the shape
  std::uint32_t there = 0;  // those that are not lost
  bool operator==(const ShapeCount&) const = default;
};

class NodeIndex {
 public:
  // The node is new, or its spec, status or the health of one of its GPUs has changed.
  void install(const NodeState& node);
  // What is available on the node has changed, or whether it takes tasks.
  void refresh(const NodeState& node);
  // The node that was installed last was there for a trial only.
  void forget_last();

  const std::vector<ModelGroups>& groups() const { return groups_; }
  std::size_t group_count() const;
  // The group of a node that takes tasks.
  const NodeGroup& group_of(NodeId node) const { return entries_[node.index()].group->second; }
  // Whether that is its group, and it takes tasks at all.
  bool is_in(NodeId node, const NodeGroup& group) const {
    const Entry& entry = entries_[node.index()];
    return entry.listed && &entry.group->second == &group;
  }

  const std::vector<NodeClass>& classes() const { return classes_; }
  NodeClassId class_of(NodeId node) const { return entries_[node.index()].node_class; }
  // Milli-GPUs of the model that are available on schedulable nodes of the class.
  std::int64_t available_milli(NodeClassId node_class, GpuModelId model) const {
    return available_[node_class.index()][model.index()];
  }
  const std::map<NodeShape, ShapeCount>& shapes() const { return shapes_; }
  const NodeShape& shape_of(NodeId node) const { return entries_[node.index()].shape; }

  // Equal when they describe the same fleet, whatever the order in which they came to know it.
  bool describes_same(const NodeIndex& other) const;

 private:
  struct Entry {
    NodeClassId node_class;
    NodeShape shape;
    bool installed = false;
    bool there = false;
    bool listed = false;
    std::size_t models = 0;  // the place of its list in `groups_`
    std::size_t reach = 0;   // and there
    NodeGroups::iterator group;
    std::int64_t cpu_milli = 0;
  };

  NodeClassId intern_class(const NodeState& node);
  NodeGroups& groups_for(const GpuFills& gpus, Entry& entry);
  NodeGroup::Place unlist(NodeId node, Entry& entry);
  void list(const NodeState& node, Entry& entry, const GroupKey& key, NodeGroup::Place place);
  void relist(const NodeState& node, Entry& entry, NodeGroup::Place place);
  void count_available(const GroupKey& key, int sign);
  void count_shape(const Entry& entry, int sign);

  std::vector<NodeClass> classes_;
  std::vector<Entry> entries_;  // by node
  std::vector<ModelGroups> groups_;
  std::vector<std::array<std::int64_t, kMaxGpuModels>> available_;  // by class
  std::map<NodeShape, ShapeCount> shapes_;
};

}  // namespace berth::state

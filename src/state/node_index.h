#pragma once
// NodeIndex: the nodes in groups of interchangeable nodes, for placement.
//
// A group holds the schedulable nodes of one class (pool, taints, containers, countables) whose GPUs are in the same
// state: the same multiset of (model, available share, trust domain of the shares). Whether GPUs fit is decided once
// per group. Inside a group the nodes are sorted by available CPU, so that a look-up finds the tightest node that still
// fits. Memory is checked node by node.
//
// Groups are listed by the GPU models of their nodes and by reach. The reach is the most that one task could get on a
// node: a number of whole GPUs of one model, or the largest share of one GPU. So a task is compared only with groups
// that have what it requests.
//
// Labels are no part of the class. If each node has its own name as a label, there would be as many classes as nodes. A
// job that selects nodes by label filters the members of a group. Images are no part of it either, because each node
// may have different ones (sched/place/image_holders.h).

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

// The class of a node: what distinguishes nodes apart from what is free on them.
struct NodeClass {
  std::uint32_t pool = 0;
  std::vector<Taint> taints;
  bool containers = false;  // it runs containers
  Countables countables;
  bool operator==(const NodeClass&) const = default;
};

// One GPU of a group: its model, its available share, and the trust domain of the shares that are bound on it. If no
// share is bound, it is the trust domain of the nominated shares.
struct GpuFill {
  GpuModelId model;
  std::uint16_t available_milli = 0;
  TrustDomainId share_domain;
  MigSlices taken = 0;  // MIG: slices that are bound or nominated
  bool operator==(const GpuFill&) const = default;
};

// The GPUs of a node in sorted order, so that nodes with equal GPUs compare equal.
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
  std::int64_t available_milli = 0;  // of all GPUs together; first, because best fit prefers the least
  NodeClassId node_class;
  GpuFills gpus;
  auto operator<=>(const GroupKey&) const = default;
};

struct NodeGroup {
  using Members = std::map<std::pair<std::int64_t, NodeId>, std::int64_t>;
  using Place = Members::node_type;
  Members memory;  // (available CPU, node) to available MiB
  bool operator==(const NodeGroup&) const = default;
};

using NodeGroups = std::map<GroupKey, NodeGroup>;

// Reach: the most that one task could get on a node, in steps. The first steps are shares of a GPU by eighths, the
// others are numbers of whole GPUs of one model.
class Reach {
 public:
  static constexpr std::size_t kShares = 8;
  static constexpr std::size_t kSteps = kShares + kMaxGpusPerNode;

  static Reach of(std::size_t whole_gpus, std::int64_t share_milli) {
    if (whole_gpus > 0) return Reach(kShares + whole_gpus - 1);
    return Reach(static_cast<std::size_t>(share_milli) * kShares / kMilli);
  }
  // Returns the reach that a task with this request needs.
  static Reach of(const TaskRequest& request) {
    return request.is_share() ? of(0, request.gpu_milli) : of(static_cast<std::size_t>(request.gpus), 0);
  }
  explicit Reach(std::size_t step) : step_(step) {}

  std::size_t step() const { return step_; }
  std::size_t whole_gpus() const { return step_ < kShares ? 0 : step_ - kShares + 1; }
  // Returns the milli-GPUs that a node of this reach has available at least.
  std::int64_t least_milli() const {
    return step_ < kShares ? static_cast<std::int64_t>(step_) * kMilli / static_cast<std::int64_t>(kShares)
                           : static_cast<std::int64_t>(whole_gpus()) * kMilli;
  }

 private:
  std::size_t step_ = 0;
};

// The groups of nodes that have exactly these GPU models (bit m: model m), by reach. The group with the least available
// comes first.
struct ModelGroups {
  std::uint32_t models = 0;
  std::array<NodeGroups, Reach::kSteps> by_reach;
};

// The number of GPUs of one model in one NUMA domain of a node.
struct NumaPart {
  std::uint8_t model = 0;
  std::uint8_t all = 0;
  std::uint8_t healthy = 0;
  auto operator<=>(const NumaPart&) const = default;
};

// The shape of a node: nodes of equal shape would be interchangeable if they were empty.
struct NodeShape {
  NodeClassId node_class;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::array<std::uint8_t, kMaxGpuModels> gpus{};  // healthy GPUs, by model
  std::array<NumaPart, kMaxGpusPerNode> numa{};    // in descending order; unused entries are empty
  std::uint8_t numa_domains = 0;                   // NUMA domains with healthy GPUs
  auto operator<=>(const NodeShape&) const = default;
};
struct ShapeCount {
  std::uint32_t known = 0;  // all nodes of the shape
  std::uint32_t there = 0;  // nodes of the shape that are not lost
  bool operator==(const ShapeCount&) const = default;
};

class NodeIndex {
 public:
  // Adds the node, or updates it after a change of its spec, its status or the health of a GPU.
  void install(const NodeState& node);
  // Updates the node after a change of what is available on it, or of whether it takes tasks.
  void refresh(const NodeState& node);
  // Removes the node that was installed last: a transaction that added it is rolled back.
  void forget_last();

  const std::vector<ModelGroups>& groups() const { return groups_; }
  std::size_t group_count() const;
  // Returns the group of the node. Requires that the node takes tasks.
  const NodeGroup& group_of(NodeId node) const { return entries_[node.index()].group->second; }
  // Returns true if the node takes tasks and is in this group.
  bool is_in(NodeId node, const NodeGroup& group) const {
    const Entry& entry = entries_[node.index()];
    return entry.listed && &entry.group->second == &group;
  }

  const std::vector<NodeClass>& classes() const { return classes_; }
  NodeClassId class_of(NodeId node) const { return entries_[node.index()].node_class; }
  // Returns the milli-GPUs of the model that are available on schedulable nodes of the class.
  std::int64_t available_milli(NodeClassId node_class, GpuModelId model) const {
    return available_[node_class.index()][model.index()];
  }
  const std::map<NodeShape, ShapeCount>& shapes() const { return shapes_; }
  const NodeShape& shape_of(NodeId node) const { return entries_[node.index()].shape; }

  // Returns true if both describe the same fleet. The order in which nodes were installed does not matter.
  bool describes_same(const NodeIndex& other) const;

 private:
  struct Entry {
    NodeClassId node_class;
    NodeShape shape;
    bool installed = false;
    bool there = false;
    bool listed = false;
    std::size_t models = 0;  // index of its list in `groups_`
    std::size_t reach = 0;   // index in that list
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

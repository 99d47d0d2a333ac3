#pragma once
// TopologyIndex: the domains of the configured topology levels (zone, block, rack, NVLink domain, ...) as a tree,
// outermost first. The spec of a node names its domain at each level; a label with the name of the level does the same.
// A domain name is unique only inside the domain around it. A node without a name at a level is in no domain of that
// level.
//
// Each domain keeps sums of what is available on its nodes. So placement can tell how many tasks a domain could take
// without a look at each node. Domain ids are given in the order of first appearance and mean nothing outside this
// state. Messages and sort orders use the path.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "state/node_index.h"
#include "state/node_state.h"

namespace berth::state {

// The nodes of a domain that have one class and `whole` whole GPUs of the model available. `milli` is the sum of what
// they have available of that model.
struct DomainRoom {
  NodeClassId node_class;
  GpuModelId model;
  std::uint8_t whole = 0;
  std::uint32_t nodes = 0;
  std::int64_t milli = 0;
  bool operator==(const DomainRoom&) const = default;
};

struct Domain {
  std::string path;  // "z1/b2/r3"
  std::size_t level = 0;
  DomainId parent;                            // none at the outermost level
  std::vector<DomainId> children;             // in the order of their paths
  std::vector<NodeId> nodes;                  // all nodes in it, ascending
  std::vector<DomainRoom> room;               // sorted; only nodes that take tasks
  std::map<NodeShape, std::uint32_t> shapes;  // only nodes that are not lost
};

class TopologyIndex {
 public:
  // Sets the levels and removes all domains. The caller installs every node again.
  void configure(std::vector<std::string> levels);
  // Adds the node, or updates it after a change of its spec, its status or the health of a GPU. Requires that `nodes`
  // has installed it already.
  void install(const NodeState& node, const NodeIndex& nodes);
  // Updates the node after a change of what is available on it, or of whether it takes tasks.
  void refresh(const NodeState& node);
  // Removes the node that was installed last: a transaction that added it is rolled back.
  void forget_last();

  const std::vector<std::string>& levels() const { return levels_; }
  std::optional<std::size_t> level_named(std::string_view name) const;
  // Returns the domains of one level, in the order of their paths. A domain may have lost all its nodes.
  std::span<const DomainId> at_level(std::size_t level) const { return by_level_[level]; }
  const Domain& domain(DomainId id) const { return domains_[id.index()]; }
  // Returns the domains that the node is in, outermost first.
  std::span<const DomainId> of_node(NodeId node) const { return places_[node.index()].domains; }
  // Returns the path of the innermost domain of the node, or "".
  std::string_view path_of(NodeId node) const;

  // Returns true if both describe the same domains. `mine` and `theirs` translate the ids of node classes.
  bool describes_same(const NodeIndex& mine, const TopologyIndex& other, const NodeIndex& theirs) const;

 private:
  struct Place {
    std::vector<DomainId> domains;
    NodeShape shape;
    bool there = false;
    std::vector<DomainRoom> room;  // what the node adds to each of its domains; `nodes` is 1
  };

  DomainId domain_named(DomainId parent, std::size_t level, const std::string& name);
  std::vector<DomainId> domains_for(const NodeSpec& spec);
  void enter(NodeId node, const Place& place);
  void leave(NodeId node, const Place& place);
  void count(const Place& place, int sign);

  std::vector<std::string> levels_;
  std::vector<Domain> domains_;
  std::map<std::pair<std::size_t, std::string>, DomainId> ids_;  // by level and path
  std::vector<std::vector<DomainId>> by_level_;
  std::vector<Place> places_;  // by node
};

}  // namespace berth::state

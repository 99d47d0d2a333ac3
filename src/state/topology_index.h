#pragma once
// Where nodes stand: a tree of domains by the configured levels (zone, block, rack, NVLink domain, ...), outermost
// first. A node names its domain at each level in its spec, or by a label called like the level; a name means something
// only inside the domain around it. A node without a name at a level is in no domain of that level.
//
// Every domain knows what is available in it, kept current node by node, so that placement tells without looking at
// nodes how many tasks a domain could take. Ids are numbered as the domains come to be known and mean nothing outside
// this state; what is told or ordered goes by the path.

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

// The nodes of one class that have so many whole GPUs of the model available, and all that is available of it there.
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
  DomainId parent;                            // none for an outermost one
  std::vector<DomainId> children;             // in the order of their paths
  std::vector<NodeId> nodes;                  // all below it, ascending
  std::vector<DomainRoom> room;               // ordered; of nodes that take tasks
  std::map<NodeShape, std::uint32_t> shapes;  // of nodes that are not lost
};

class TopologyIndex {
 public:
  // Forgets all domains; every node is to be installed anew.
  void configure(std::vector<std::string> levels);
  // The node is new, or its spec, status or the health of one of its GPUs has changed. `nodes` knows it already.
  void install(const NodeState& node, const NodeIndex& nodes);
  // What is available on the node has changed, or whether it takes tasks.
  void refresh(const NodeState& node);
  // The node that was installed last was there for a trial only.
  void forget_last();

  const std::vector<std::string>& levels() const { return levels_; }
  std::optional<std::size_t> level_named(std::string_view name) const;
  // Those of one level, in the order of their paths; some may have lost all their nodes.
  std::span<const DomainId> at_level(std::size_t level) const { return by_level_[level]; }
  const Domain& domain(DomainId id) const { return domains_[id.index()]; }
  // The domains that the node is in, outermost first.
  std::span<const DomainId> of_node(NodeId node) const { return places_[node.index()].domains; }
  // The path of the innermost of them, or "".
  std::string_view path_of(NodeId node) const;

  // Equal when they describe the same places; `mine` and `theirs` say what the classes of nodes are.
  bool describes_same(const NodeIndex& mine, const TopologyIndex& other, const NodeIndex& theirs) const;

 private:
  struct Place {
    std::vector<DomainId> domains;
    NodeShape shape;
    bool there = false;
    std::vector<DomainRoom> room;  // what this node counts in each of its domains; `nodes` is 1
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

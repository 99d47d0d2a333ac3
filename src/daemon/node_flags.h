#pragma once
// The flags of `berth serve` that describe this machine as a node: pool, place in the topology, labels and taints. A
// malformed flag is refused before a log is created. A name that the configuration does not know is refused if it is a
// place and the configuration comes with this start. Otherwise the server only warns, because configurations change.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/cluster_config.h"
#include "model/node.h"

namespace berth::daemon {

struct NodeFlags {
  std::optional<std::string> pool;
  std::optional<std::string> at;    // b1/r1: a name for each level, outermost first
  std::vector<std::string> labels;  // KEY=VALUE
  std::vector<std::string> taints;  // keys

  bool any() const { return pool || at || !labels.empty() || !taints.empty(); }
};

// Sets the flags on the node; its own labels stay. After an error, part of them may be set.
Result<void> put_node_flags(const NodeFlags& flags, NodeSpec& node);

// Returns an error if the place has more names than there are topology levels: the rest would have no effect.
Result<void> check_place(const NodeSpec& node, const ClusterConfig& config);

// Returns what the node states but the configuration does not know, one sentence each.
std::vector<std::string> unknown_to(const ClusterConfig& config, const NodeSpec& node);

}  // namespace berth::daemon

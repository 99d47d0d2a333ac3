#pragma once
// What the flags of `berth serve` say of this machine as a node: its pool, its place in the topology, its labels and
// its taints. What is wrong by itself is refused before a log is made. What the configuration does not know is refused
// where it is a place and the configuration comes with this start; else the server warns of it, as configurations
// change.

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

// Puts them onto the node, whose own labels stay; on an error part of them.
Result<void> put_node_flags(const NodeFlags& flags, NodeSpec& node);

// A place with more names than there are levels would be read by nobody.
Result<void> check_place(const NodeSpec& node, const ClusterConfig& config);

// What the node states and the configuration does not know, one sentence each.
std::vector<std::string> unknown_to(const ClusterConfig& config, const NodeSpec& node);

}  // namespace berth::daemon

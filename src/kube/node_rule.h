#pragma once
// Which nodes an object of the API server allows: the node selector of a volume, a storage class or a pod's required
// node affinity. Labels and names are compared as kube-scheduler does; a label that a node lacks is not In, is NotIn,
// and is neither over nor under a number.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/node.h"

namespace berth::kube {

// What begins the label that berth gives to the nodes that a rule allows, where their own labels cannot say it: of
// volumes, and of pods.
inline constexpr std::string_view kVolumeLabel = "berth.dev/volume-nodes-";
inline constexpr std::string_view kAffinityLabel = "berth.dev/affinity-nodes-";
// The label that each node has: its own name.
inline constexpr std::string_view kNameLabel = "berth.dev/node";

enum class NodeOperator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess, kUnknown };

struct NodeExpression {
  std::string key;  // of a label; "metadata.name" of a field: the node's name
  NodeOperator op = NodeOperator::kIn;
  std::vector<std::string> values;  // ascending
  bool is_field = false;
  bool operator==(const NodeExpression&) const = default;
};

// Nodes, as a node selector says: those for which all expressions of at least one term hold. An empty term allows none.
struct NodeRule {
  std::vector<std::vector<NodeExpression>> terms;
  bool operator==(const NodeRule&) const = default;
};

// Reads one expression; `op` is the word for its operator.
NodeExpression read_expression(const boost::json::object& object, std::string_view op, bool is_field);
// Reads a NodeSelector. A term that is over the limits or not understood allows no node.
NodeRule read_rule(const boost::json::object& selector);
// Returns why the rule cannot be obeyed as it was written: it has an unknown operator or field, or is at a limit.
std::string problem_of(const NodeRule& rule);

// Returns the number with 16 hexadecimal digits.
std::string hex_of(std::uint64_t number);

bool allows(const NodeRule& rule, const std::string& node, const Labels& labels);
// Returns "topology.kubernetes.io/zone in (z1, z2)"; terms are joined by "or".
std::string text_of(const NodeRule& rule);
// Returns the rule as labels of nodes, if it is one term of labels (or the name) with one value each; else nothing.
std::optional<Labels> labels_of(const NodeRule& rule);
// Returns the label that stands for the rule; equal rules have the same one.
std::string label_of(const NodeRule& rule, std::string_view prefix = kVolumeLabel);

}  // namespace berth::kube

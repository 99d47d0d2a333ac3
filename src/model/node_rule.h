#pragma once
// Node rules: which nodes a task group allows, as a predicate over a node's labels and name. It is Kubernetes' node
// selector (required node affinity), with its operators and its meaning of labels that a node lacks. A node whose
// labels change is judged anew.

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "model/node.h"

namespace berth {

inline constexpr std::size_t kMaxNodeRules = 128;  // of one task group
inline constexpr std::size_t kMaxRuleTerms = 100;
inline constexpr std::size_t kMaxRuleExpressions = 100;  // of one term
inline constexpr std::size_t kMaxRuleValues = 1000;      // of one expression

enum class NodeOperator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess };
BERTH_ENUM_NAMES(NodeOperator, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt");

// One condition. A label that the node lacks is not In, is NotIn, and is neither over nor under a number.
struct NodeExpression {
  std::string key;  // of a label; empty if `by_name`
  NodeOperator op = NodeOperator::kIn;
  std::vector<std::string> values;  // ascending, none twice
  bool by_name = false;             // it is about the node's name
  auto operator<=>(const NodeExpression&) const = default;
  static constexpr auto fields() {
    return field_list(field("key", &NodeExpression::key), field("op", &NodeExpression::op),
                      field("values", &NodeExpression::values), field("by_name", &NodeExpression::by_name));
  }
};

// The nodes for which all expressions of at least one term hold. An empty term allows none.
struct NodeRule {
  std::vector<std::vector<NodeExpression>> terms;
  auto operator<=>(const NodeRule&) const = default;
  static constexpr auto fields() { return field_list(field("terms", &NodeRule::terms)); }
};

bool allows(const NodeRule& rule, std::string_view node, const Labels& labels);

// Returns what is wrong with the expression, or with the first such one of the rule; empty: nothing. An empty term is
// not wrong.
std::string problem_of(const NodeExpression& one);
std::string problem_of(const NodeRule& rule);

// Returns the rule in words: "zone in (z1, z2)"; terms are joined by "or". Of many values it names the first.
std::string text_of(const NodeRule& rule);

// Reads a rule that is written in one line. Conditions: zone=z1|z2, zone!=z1, gpu (has the label), !gpu, cores>16,
// cores<16. All of those joined by && must hold; || joins alternatives. The key metadata.name is the node's name.
Result<NodeRule> parse_node_rule(std::string_view text);
// Returns the line that parse_node_rule reads as this rule; nothing if there is none.
std::optional<std::string> line_of(const NodeRule& rule);

}  // namespace berth

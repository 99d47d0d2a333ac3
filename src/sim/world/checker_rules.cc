// Checks which nodes a task group allows: by code of its own, what taints and node rules mean.

#include <algorithm>
#include <charconv>

#include "sim/world/checker.h"

namespace berth::sim {
namespace {

bool is_tolerated(const TaskGroup& group, const Taint& taint) {
  const std::string effect(name_of(taint.effect));
  return std::any_of(group.tolerations.begin(), group.tolerations.end(), [&](std::string text) {
    if (text.ends_with(":" + effect)) text.resize(text.size() - effect.size() - 1);
    return text == "*" || text == taint.key || text == taint.key + "=" + taint.value;
  });
}

std::int64_t number_in(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The simulation compares numbers with labels that are numbers.
bool is_so(const NodeExpression& one, const NodeSpec& node) {
  bool there = one.by_name;
  std::string value = one.by_name ? node.name : std::string();
  for (const auto& [key, text] : node.labels) {
    if (one.by_name || key != one.key) continue;
    there = true;
    value = text;
  }
  const bool listed = there && std::count(one.values.begin(), one.values.end(), value) != 0;
  switch (one.op) {
    case NodeOperator::kIn:
      return listed;
    case NodeOperator::kNotIn:
      return !listed;
    case NodeOperator::kExists:
      return there;
    case NodeOperator::kDoesNotExist:
      return !there;
    case NodeOperator::kGreater:
      return there && number_in(value) > number_in(one.values.front());
    case NodeOperator::kLess:
      return there && number_in(value) < number_in(one.values.front());
  }
  return false;
}

bool is_obeyed(const NodeRule& rule, const NodeSpec& node) {
  for (const auto& term : rule.terms) {
    const auto so = std::count_if(term.begin(), term.end(), [&](const auto& one) { return is_so(one, node); });
    if (!term.empty() && std::cmp_equal(so, term.size())) return true;
  }
  return false;
}

}  // namespace

bool Checker::is_allowed(const TaskGroup& group, const NodeSpec& node) {
  for (const Taint& taint : node.taints) {
    if (!is_tolerated(group, taint)) return false;
  }
  for (const NodeRule& rule : group.node_rules) {
    if (!is_obeyed(rule, node)) return false;
  }
  return true;
}

}  // namespace berth::sim

#include "model/node_rule.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace berth {
namespace {

constexpr std::string_view kNodeName = "metadata.name";
constexpr std::size_t kMostShown = 8;  // values in words

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string_view> value_of(const NodeExpression& one, std::string_view node, const Labels& labels) {
  if (one.by_name) return node;
  const auto found =
      std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == one.key; });
  return found == labels.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

bool is_over(std::optional<std::string_view> value, const NodeExpression& one, bool over) {
  if (!value || one.values.size() != 1) return false;
  const auto has = number_in(*value);
  const auto bound = number_in(one.values.front());
  return has && bound && (over ? *has > *bound : *has < *bound);
}

bool holds(const NodeExpression& one, std::string_view node, const Labels& labels) {
  const auto value = value_of(one, node, labels);
  const auto is_listed = [&] { return std::binary_search(one.values.begin(), one.values.end(), *value); };
  switch (one.op) {
    case NodeOperator::kIn:
      return value && is_listed();
    case NodeOperator::kNotIn:
      return !value || !is_listed();
    case NodeOperator::kExists:
      return value.has_value();
    case NodeOperator::kDoesNotExist:
      return !value;
    case NodeOperator::kGreater:
      return is_over(value, one, true);
    case NodeOperator::kLess:
      return is_over(value, one, false);
  }
  return false;
}

std::string_view words_of(NodeOperator op) {
  switch (op) {
    case NodeOperator::kIn:
      return " in ";
    case NodeOperator::kNotIn:
      return " not in ";
    case NodeOperator::kExists:
      return " exists";
    case NodeOperator::kDoesNotExist:
      return " does not exist";
    case NodeOperator::kGreater:
      return " over ";
    case NodeOperator::kLess:
      return " under ";
  }
  return {};
}

// The sign of the operator in a line; of those that have values.
std::string_view sign_of(NodeOperator op) {
  if (op == NodeOperator::kGreater) return ">";
  if (op == NodeOperator::kLess) return "<";
  return op == NodeOperator::kNotIn ? "!=" : "=";
}

bool has_values(NodeOperator op) { return op != NodeOperator::kExists && op != NodeOperator::kDoesNotExist; }

std::string text_of(const NodeExpression& one) {
  std::string text = (one.by_name ? std::string("the node's name") : one.key) + std::string(words_of(one.op));
  if (!has_values(one.op)) return text;
  text += "(";
  for (std::size_t i = 0; i < one.values.size() && i < kMostShown; ++i) text += (i == 0 ? "" : ", ") + one.values[i];
  if (one.values.size() > kMostShown) text += " and " + std::to_string(one.values.size() - kMostShown) + " more";
  return text + ")";
}

std::string line_of(const NodeExpression& one) {
  const std::string key = one.by_name ? std::string(kNodeName) : one.key;
  if (!has_values(one.op)) return (one.op == NodeOperator::kDoesNotExist ? "!" : "") + key;
  std::string text = key + std::string(sign_of(one.op));
  for (std::size_t i = 0; i < one.values.size(); ++i) text += (i == 0 ? "" : "|") + one.values[i];
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; (at = text.find(between)) != std::string_view::npos;) {
    parts.push_back(trimmed(text.substr(0, at)));
    text.remove_prefix(at + between.size());
  }
  parts.push_back(trimmed(text));
  return parts;
}

void put_operator(std::string_view text, std::size_t sign, NodeExpression& one, std::string_view& values) {
  const bool negated = text.substr(sign).starts_with("!=");
  if (negated)
    one.op = NodeOperator::kNotIn;
  else if (text[sign] != '=')
    one.op = text[sign] == '>' ? NodeOperator::kGreater : NodeOperator::kLess;
  values = trimmed(text.substr(sign + (negated ? 2 : 1)));
}

Result<NodeExpression> parse_expression(std::string_view text) {
  NodeExpression one;
  std::string_view values;
  std::string_view key = text;
  if (text.starts_with('!')) {
    one.op = NodeOperator::kDoesNotExist;
    key = trimmed(text.substr(1));
  } else if (const std::size_t sign = text.find_first_of("=!<>"); sign != std::string_view::npos) {
    put_operator(text, sign, one, values);
    key = trimmed(text.substr(0, sign));
    for (const std::string_view value : parts_of(values, "|")) one.values.emplace_back(value);
    std::sort(one.values.begin(), one.values.end());
    one.values.erase(std::unique(one.values.begin(), one.values.end()), one.values.end());
  } else {
    one.op = NodeOperator::kExists;
  }
  const bool readable = !key.empty() && key.find_first_of("=!<>|& ") == std::string_view::npos &&
                        values.find_first_of("=!<>&") == std::string_view::npos;
  const std::string said = "'" + std::string(text.substr(0, 80)) + "'";
  if (!readable)
    return invalid(said + " is no condition; give KEY=VALUE|VALUE, KEY!=VALUE, KEY, !KEY, KEY>NUMBER or KEY<NUMBER");
  one.by_name = key == kNodeName;
  if (!one.by_name) one.key = key;
  if (std::string problem = problem_of(one); !problem.empty()) return invalid(said + ": " + problem);
  return one;
}

}  // namespace

bool allows(const NodeRule& rule, std::string_view node, const Labels& labels) {
  return std::any_of(rule.terms.begin(), rule.terms.end(), [&](const std::vector<NodeExpression>& term) {
    return !term.empty() &&
           std::all_of(term.begin(), term.end(), [&](const NodeExpression& one) { return holds(one, node, labels); });
  });
}

std::string problem_of(const NodeExpression& one) {
  if (one.key.empty() && !one.by_name) return "a label has no name; give its key";
  const std::string op(name_of(one.op));
  const bool lists = one.op == NodeOperator::kIn || one.op == NodeOperator::kNotIn;
  if (one.by_name && !lists) return "the name of a node goes with In and NotIn alone";
  if (one.values.size() > kMaxRuleValues) return "over " + std::to_string(kMaxRuleValues) + " values for " + one.key;
  if (lists && one.values.empty()) return op + " needs at least one value";
  if (!has_values(one.op) && !one.values.empty()) return op + " takes no values; leave them out";
  const bool numbers = !lists && has_values(one.op);
  if (numbers && (one.values.size() != 1 || !number_in(one.values.front())))
    return op + " needs one value that is a whole number";
  return {};
}

std::string problem_of(const NodeRule& rule) {
  if (rule.terms.size() > kMaxRuleTerms) return "over " + std::to_string(kMaxRuleTerms) + " terms";
  for (const auto& term : rule.terms) {
    if (term.size() > kMaxRuleExpressions)
      return "over " + std::to_string(kMaxRuleExpressions) + " expressions in a term";
    for (const NodeExpression& one : term) {
      if (std::string problem = problem_of(one); !problem.empty()) return problem;
    }
  }
  return {};
}

std::string text_of(const NodeRule& rule) {
  std::string text;
  for (const auto& term : rule.terms) {
    if (term.empty()) continue;
    if (!text.empty()) text += " or ";
    for (std::size_t i = 0; i < term.size(); ++i) text += (i == 0 ? "" : " and ") + text_of(term[i]);
  }
  return text.empty() ? "no node" : text;
}

Result<NodeRule> parse_node_rule(std::string_view text) {
  NodeRule rule;
  for (const std::string_view term : parts_of(text, "||")) {
    auto& expressions = rule.terms.emplace_back();
    for (const std::string_view part : parts_of(term, "&&")) {
      auto one = parse_expression(part);
      if (!one) return one.error();
      expressions.push_back(std::move(*one));
    }
  }
  if (std::string problem = problem_of(rule); !problem.empty()) return invalid(problem);
  return rule;
}

std::optional<std::string> line_of(const NodeRule& rule) {
  std::string text;
  for (const auto& term : rule.terms) {
    if (!text.empty()) text += " || ";
    for (std::size_t i = 0; i < term.size(); ++i) text += (i == 0 ? "" : " && ") + line_of(term[i]);
  }
  const auto read = parse_node_rule(text);
  return read && *read == rule ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace berth

#include "kube/node_rule.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostTerms = 100;
constexpr std::size_t kMostExpressions = 100;
constexpr std::size_t kMostValues = 1000;
constexpr std::size_t kMostLabelKey = 63;  // of berth
constexpr std::string_view kNodeName = "metadata.name";

constexpr std::array<std::pair<std::string_view, NodeOperator>, 6> kOperators{
    {{"In", NodeOperator::kIn},
     {"NotIn", NodeOperator::kNotIn},
     {"Exists", NodeOperator::kExists},
     {"DoesNotExist", NodeOperator::kDoesNotExist},
     {"Gt", NodeOperator::kGreater},
     {"Lt", NodeOperator::kLess}}};

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

const std::string* value_of(const NodeExpression& one, const std::string& node, const Labels& labels) {
  if (one.is_field) return one.key == kNodeName ? &node : nullptr;
  const auto found =
      std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == one.key; });
  return found == labels.end() ? nullptr : &found->second;
}

bool holds(const NodeExpression& one, const std::string& node, const Labels& labels) {
  const std::string* value = value_of(one, node, labels);
  const auto is_listed = [&] { return std::binary_search(one.values.begin(), one.values.end(), *value); };
  switch (one.op) {
    case NodeOperator::kIn:
      return value != nullptr && is_listed();
    case NodeOperator::kNotIn:
      return value == nullptr || !is_listed();
    case NodeOperator::kExists:
      return value != nullptr;
    case NodeOperator::kDoesNotExist:
      return value == nullptr;
    case NodeOperator::kGreater:
    case NodeOperator::kLess: {
      const auto has = number_in(value == nullptr ? std::string_view() : *value);
      const auto bound = number_in(one.values.size() == 1 ? std::string_view(one.values.front()) : std::string_view());
      const bool over = has.value_or(0) > bound.value_or(0);
      const bool under = has.value_or(0) < bound.value_or(0);
      return has && bound && (one.op == NodeOperator::kGreater ? over : under);
    }
    case NodeOperator::kUnknown:
      return false;
  }
  return false;
}

std::string_view word_of(NodeOperator op) {
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
    case NodeOperator::kUnknown:
      return " by an unknown operator ";
  }
  return {};
}

std::string text_of(const NodeExpression& one) {
  std::string text = shown(one.key, 320) + std::string(word_of(one.op));
  if (one.op == NodeOperator::kExists || one.op == NodeOperator::kDoesNotExist) return text;
  text += "(";
  for (std::size_t i = 0; i < one.values.size(); ++i) text += (i == 0 ? "" : ", ") + shown(one.values[i], 253);
  return text + ")";
}

void read_expressions(const json::object& term, std::string_view member, bool is_field,
                      std::vector<NodeExpression>& into) {
  for (const json::object* one : objects_at(term, {member})) {
    if (into.size() > kMostExpressions) return;
    const bool is_one_too_many = into.size() == kMostExpressions;
    into.push_back(read_expression(*one, is_one_too_many ? "" : text_at(*one, {"operator"}), is_field));
  }
}

}  // namespace

NodeExpression read_expression(const json::object& object, std::string_view op, bool is_field) {
  NodeExpression one;
  one.key = text_at(object, {"key"});
  one.is_field = is_field;
  const auto known =
      std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& pair) { return pair.first == op; });
  one.op = known == kOperators.end() ? NodeOperator::kUnknown : known->second;
  if (const json::array* values = array_at(object, {"values"})) {
    if (values->size() > kMostValues) one.op = NodeOperator::kUnknown;
    for (const json::value& value : *values) {
      if (const json::string* text = value.if_string(); text != nullptr && one.values.size() < kMostValues)
        one.values.emplace_back(text->data(), text->size());
    }
  }
  std::sort(one.values.begin(), one.values.end());
  return one;
}

NodeRule read_rule(const json::object& selector) {
  NodeRule rule;
  for (const json::object* term : objects_at(selector, {"nodeSelectorTerms"})) {
    std::vector<NodeExpression> all;
    read_expressions(*term, "matchExpressions", false, all);
    read_expressions(*term, "matchFields", true, all);
    if (rule.terms.size() < kMostTerms) rule.terms.push_back(std::move(all));
  }
  return rule;
}

std::string problem_of(const NodeRule& rule) {
  if (rule.terms.size() >= kMostTerms) return std::to_string(kMostTerms) + " terms or more";
  for (const auto& term : rule.terms) {
    if (term.size() > kMostExpressions) return "over " + std::to_string(kMostExpressions) + " expressions in a term";
    for (const NodeExpression& one : term) {
      const std::string key = shown(one.key, 80);
      if (one.values.size() == kMostValues) return std::to_string(kMostValues) + " values or more for " + key;
      if (one.op == NodeOperator::kUnknown) return "an operator for " + key + " that berth does not know";
      if (one.is_field && one.key != kNodeName) return "the field " + key;
    }
  }
  return {};
}

std::string hex_of(std::uint64_t number) {
  std::array<char, 16> digits{};
  digits.fill('0');
  std::array<char, 16> written{};
  const auto [end, error] = std::to_chars(written.data(), written.data() + written.size(), number, 16);
  std::copy_backward(written.data(), end, digits.data() + digits.size());
  return {digits.data(), digits.size()};
}

bool allows(const NodeRule& rule, const std::string& node, const Labels& labels) {
  return std::any_of(rule.terms.begin(), rule.terms.end(), [&](const std::vector<NodeExpression>& term) {
    return !term.empty() &&
           std::all_of(term.begin(), term.end(), [&](const NodeExpression& one) { return holds(one, node, labels); });
  });
}

std::string text_of(const NodeRule& rule) {
  std::string text;
  for (const auto& term : rule.terms) {
    if (!text.empty()) text += " or ";
    for (std::size_t i = 0; i < term.size(); ++i) text += (i == 0 ? "" : " and ") + text_of(term[i]);
  }
  return text.empty() ? "no node" : text;
}

std::optional<Labels> labels_of(const NodeRule& rule) {
  if (rule.terms.size() != 1 || rule.terms.front().empty()) return std::nullopt;
  Labels labels;
  for (const NodeExpression& one : rule.terms.front()) {
    const bool is_name = one.is_field && one.key == kNodeName;
    if ((one.is_field && !is_name) || one.op != NodeOperator::kIn || one.values.size() != 1 || one.key.empty() ||
        one.key.size() > kMostLabelKey)
      return std::nullopt;
    labels.emplace_back(is_name ? kNameLabel : one.key, one.values.front());
  }
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(labels.begin(), labels.end(), same_key) != labels.end()) return std::nullopt;
  return labels;
}

std::string label_of(const NodeRule& rule, std::string_view prefix) {
  Hasher hasher;
  for (const auto& term : rule.terms) {
    hasher.add(static_cast<std::uint64_t>(term.size()));
    for (const NodeExpression& one : term) {
      hasher.add(one.key).add(static_cast<std::uint64_t>(one.op)).add(static_cast<std::uint64_t>(one.is_field));
      hasher.add(static_cast<std::uint64_t>(one.values.size()));
      for (const std::string& value : one.values) hasher.add(value);
    }
  }
  return std::string(prefix) + hex_of(hasher.digest());
}

}  // namespace berth::kube

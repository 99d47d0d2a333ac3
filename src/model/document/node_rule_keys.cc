#include "model/document/node_rule_keys.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/toleration.h"

namespace berth::document {

// Operators of a toleration.
enum class TolerationOperator { kEqual, kExists };

}  // namespace berth::document

namespace berth {
BERTH_ENUM_NAMES(document::TolerationOperator, "Equal", "Exists");
}  // namespace berth

namespace berth::document {
namespace {

constexpr std::string_view kNodeName = "metadata.name";

// The keys of one condition, which are read into it.
std::vector<Key> keys_of(NodeExpression& one) {
  return {{"key", [&one](const Value& v) { one.key = v.string(); }},
          {"field",
           [&one](const Value& v) {
             one.by_name = v.string() == kNodeName;
             if (!one.by_name) v.refuse("there is no such field of a node; give " + std::string(kNodeName));
           }},
          {"operator", [&one](const Value& v) { one.op = v.word<NodeOperator>(); }},
          {"values", [&one](const Value& v) { one.values = v.strings(); }}};
}

// Puts the values in order, and refuses what is wrong with the condition, unless its keys were refused already.
void finish(NodeExpression& one, const Value& item, std::size_t mistakes) {
  std::sort(one.values.begin(), one.values.end());
  one.values.erase(std::unique(one.values.begin(), one.values.end()), one.values.end());
  if (item.reading().mistakes().size() != mistakes) return;
  if (one.by_name && !one.key.empty()) return item.refuse("a condition has a key or a field; leave one out");
  if (std::string problem = problem_of(one); !problem.empty()) item.refuse(problem);
}

NodeExpression expression_of(const Value& item) {
  NodeExpression one;
  const std::size_t mistakes = item.reading().mistakes().size();
  item.map(keys_of(one));
  finish(one, item, mistakes);
  return one;
}

void read_any(const Value& value, NodeRule& rule) {
  value.each_item([&](const Value& item) {
    auto& term = rule.terms.emplace_back();
    if (item.node().kind == NodeKind::kMap) return term.push_back(expression_of(item));
    item.each_item([&](const Value& one) { term.push_back(expression_of(one)); });
  });
  if (std::string problem = problem_of(rule); !problem.empty() && value.reading().mistakes().empty())
    value.refuse(problem);
}

NodeRule rule_of_line(const Value& item) {
  const std::size_t mistakes = item.reading().mistakes().size();
  const std::string line = item.string();
  if (item.reading().mistakes().size() != mistakes) return {};
  auto rule = parse_node_rule(line);
  if (rule) return std::move(*rule);
  item.refuse(rule.error().message);
  return {};
}

}  // namespace

NodeRule node_rule_of(const Value& item) {
  if (item.node().kind != NodeKind::kMap) return rule_of_line(item);
  NodeRule rule;
  if (item.node().find("any") != nullptr) {
    item.map({{"any", [&](const Value& v) { read_any(v, rule); }}});
  } else {
    rule.terms.push_back({expression_of(item)});
  }
  return rule;
}

Node rule_node(const NodeRule& rule) {
  Node any = list_node();
  for (const auto& term : rule.terms) {
    Node& all = any.items.emplace_back(list_node());
    for (const NodeExpression& one : term) {
      Node& item = all.items.emplace_back(map_node());
      item.set(one.by_name ? "field" : "key", string_node(one.by_name ? kNodeName : std::string_view(one.key)));
      item.set("operator", string_node(name_of(one.op)));
      if (one.values.empty()) continue;
      Node values = list_node();
      for (const std::string& value : one.values) values.items.push_back(string_node(value));
      item.set("values", std::move(values));
    }
  }
  Node node = map_node();
  node.set("any", std::move(any));
  return node;
}

std::string toleration_of(const Value& item) {
  const std::size_t mistakes = item.reading().mistakes().size();
  if (item.node().kind != NodeKind::kMap) {
    std::string text = item.string();
    if (item.reading().mistakes().size() != mistakes) return text;
    if (const auto read = parse_toleration(text); !read) item.refuse(read.error().message);
    return text;
  }
  Toleration toleration;
  auto op = TolerationOperator::kEqual;
  std::optional<std::string> value;
  item.map({{"key", [&](const Value& v) { toleration.key = v.string(); }},
            {"operator", [&](const Value& v) { op = v.word<TolerationOperator>(); }},
            {"value", [&](const Value& v) { value = v.string(); }},
            {"effect", [&](const Value& v) { toleration.effect = v.word<TaintEffect>(); }}});
  if (item.reading().mistakes().size() != mistakes) return {};
  if (op == TolerationOperator::kEqual) {
    toleration.value = value.value_or(std::string());
    if (toleration.key.empty()) item.refuse("every key is tolerated with operator Exists alone; give a key, or Exists");
  } else if (value && !value->empty()) {
    item.refuse("operator Exists takes any value; leave value out");
  }
  std::string text = text_of(toleration);
  if (const auto read = parse_toleration(text); !read || !(*read == toleration))
    item.refuse("a taint's key has no ':' and no '='");
  return text;
}

}  // namespace berth::document

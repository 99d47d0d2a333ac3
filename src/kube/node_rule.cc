#include "kube/node_rule.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <charconv>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::string_view kNodeName = "metadata.name";
constexpr std::string_view kMark = "berth.dev/volume-nodes-";  // what older versions began it with

void say(std::string& problem, std::string text) {
  if (problem.empty()) problem = std::move(text);
}

std::vector<std::string> values_of(const json::object& object) {
  std::vector<std::string> values;
  const json::array* all = array_at(object, {"values"});
  if (all == nullptr) return values;
  for (const json::value& value : *all) {
    const json::string* text = value.if_string();
    if (text != nullptr && values.size() <= kMaxRuleValues) values.emplace_back(text->data(), text->size());
  }
  std::sort(values.begin(), values.end());
  if (values.size() <= kMaxRuleValues) values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::optional<NodeExpression> checked(NodeExpression one, const std::string& key, std::string& problem) {
  const std::string wrong = problem_of(one);
  if (wrong.empty()) return one;
  say(problem, one.values.size() > kMaxRuleValues ? wrong : "an expression for " + key + " that is none: " + wrong);
  return std::nullopt;
}

std::optional<NodeExpression> read_field(const json::object& object, std::string& problem) {
  const std::string key = text_at(object, {"key"});
  if (key != kNodeName) {
    say(problem, "the field " + shown(key, 80));
    return std::nullopt;
  }
  auto one = read_expression(object, text_at(object, {"operator"}), problem);
  if (!one) return std::nullopt;
  one->key.clear();
  one->by_name = true;
  return checked(std::move(*one), key, problem);
}

// Reads the expressions of one member of a term. Returns false if one of them cannot be obeyed.
template <class Read>
bool read_all(const json::object& term, std::string_view member, std::vector<NodeExpression>& into,
              std::string& problem, const Read& read) {
  bool sound = true;
  for (const json::object* object : objects_at(term, {member})) {
    if (into.size() == kMaxRuleExpressions) {
      say(problem, "over " + std::to_string(kMaxRuleExpressions) + " expressions in a term");
      return false;
    }
    auto one = read(*object);
    if (one)
      into.push_back(std::move(*one));
    else
      sound = false;
  }
  return sound;
}

}  // namespace

std::optional<NodeExpression> read_expression(const json::object& object, std::string_view op, std::string& problem) {
  NodeExpression one;
  one.key = text_at(object, {"key"});
  const std::string key = shown(one.key, 80);
  const auto known = enum_from_name<NodeOperator>(op);
  if (!known) {
    say(problem, "an operator for " + key + " that berth does not know");
    return std::nullopt;
  }
  one.op = *known;
  one.values = values_of(object);
  return checked(std::move(one), key, problem);
}

SelectorRead read_rule(const json::object& selector) {
  SelectorRead read;
  for (const json::object* term : objects_at(selector, {"nodeSelectorTerms"})) {
    if (read.rule.terms.size() == kMaxRuleTerms) {
      say(read.problem, "over " + std::to_string(kMaxRuleTerms) + " terms");
      break;
    }
    auto& all = read.rule.terms.emplace_back();
    const bool labels = read_all(*term, "matchExpressions", all, read.problem, [&](const json::object& object) {
      return read_expression(object, text_at(object, {"operator"}), read.problem);
    });
    const bool fields = read_all(*term, "matchFields", all, read.problem,
                                 [&](const json::object& object) { return read_field(object, read.problem); });
    if (!labels || !fields) all.clear();
  }
  return read;
}

std::string hex_of(std::uint64_t number) {
  std::array<char, 16> digits{};
  digits.fill('0');
  std::array<char, 16> written{};
  const auto [end, error] = std::to_chars(written.data(), written.data() + written.size(), number, 16);
  std::copy_backward(written.data(), end, digits.data() + digits.size());
  return {digits.data(), digits.size()};
}

std::string mark_of(const NodeRule& rule) {
  Hasher hasher;
  for (const auto& term : rule.terms) {
    hasher.add(static_cast<std::uint64_t>(term.size()));
    for (const NodeExpression& one : term) {
      hasher.add(one.by_name ? kNodeName : std::string_view(one.key)).add(static_cast<std::uint64_t>(one.op));
      hasher.add(static_cast<std::uint64_t>(one.by_name)).add(static_cast<std::uint64_t>(one.values.size()));
      for (const std::string& value : one.values) hasher.add(value);
    }
  }
  return std::string(kMark) + hex_of(hasher.digest());
}

}  // namespace berth::kube

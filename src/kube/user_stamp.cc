#include "kube/user_stamp.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <optional>

#include "base/hash.h"
#include "kube/json_reading.h"
#include "kube/node_rule.h"
#include "model/issued_name.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

// The policies of this version, and the digests of what an API server has of them. A change of the chart's policies
// changes them: berth's log says which it found.
struct Policy {
  std::string_view name;
  std::string_view digest;
};
constexpr std::array kPolicies{
    Policy{"berth-users-pods", "5e35109372a5a88e"}, Policy{"berth-users-templates", "15265d972c2a9621"},
    Policy{"berth-users-cronjobs", "4407acbd412c85e8"}, Policy{"berth-users-operators", "ca9e0fa85308b5ec"}};
constexpr std::array kNames{kPolicies[0].name, kPolicies[1].name, kPolicies[2].name, kPolicies[3].name};

constexpr std::string_view kTrusted = "not-of-a-controller";  // the condition with the accounts of operators
constexpr std::string_view kTrustedBegin = "!(request.userInfo.username in ";
constexpr std::string_view kNamespaceLabel = "kubernetes.io/metadata.name";
constexpr std::string_view kOfNamespace = "kubernetes:";  // what the user of a namespace's pods begins with
constexpr std::size_t kLeastMark = 8;

bool is_mark(std::string_view text) {
  return text.size() >= kLeastMark && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
         });
}

// Writes the value with the keys of its objects in order, so that equal values have equal texts.
json::value in_order(const json::value& value) {
  if (const json::array* array = value.if_array()) {
    json::array sorted;
    for (const json::value& one : *array) sorted.push_back(in_order(one));
    return sorted;
  }
  const json::object* object = value.if_object();
  if (object == nullptr) return value;
  std::vector<std::string_view> keys;
  for (const auto& [key, unused] : *object) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  json::object sorted;
  for (const std::string_view key : keys) sorted[key] = in_order(object->at(key));
  return sorted;
}

// Returns the element of the list that has this name, or null.
json::object* named(json::object& spec, std::string_view list, std::string_view name) {
  json::value* found = spec.if_contains(list);
  json::array* all = found == nullptr ? nullptr : found->if_array();
  if (all == nullptr) return nullptr;
  for (json::value& one : *all) {
    json::object* object = one.if_object();
    if (object != nullptr && text_at(*object, {"name"}) == name) return object;
  }
  return nullptr;
}

// Returns the expression of the element of this name, and takes it out.
std::string take_expression(json::object& spec, std::string_view list, std::string_view name) {
  json::object* one = named(spec, list, name);
  const json::value* found = one == nullptr ? nullptr : one->if_contains("expression");
  if (found == nullptr || !found->is_string()) return {};
  std::string text(found->get_string());
  one->erase("expression");
  return text;
}

struct Parts {
  std::string mark;
  std::string trusted;
  json::value selector;  // of namespaces
  std::string rest;
};
Parts parts_of(const json::object& policy) {
  Parts parts;
  const json::object* found = object_at(policy, {"spec"});
  json::object spec = found == nullptr ? json::object() : *found;
  parts.mark = take_expression(spec, "variables", "mark");
  parts.trusted = take_expression(spec, "matchConditions", kTrusted);
  if (json::value* match = spec.if_contains("matchConstraints"); match != nullptr && match->is_object()) {
    json::object& constraints = match->get_object();
    if (const json::value* selector = constraints.if_contains("namespaceSelector")) parts.selector = *selector;
    constraints.erase("namespaceSelector");
  }
  parts.rest = json::serialize(in_order(spec));
  return parts;
}

std::string digest_of(const Parts& parts) { return hex_of(Hasher().add(parts.rest).digest()); }

// Returns true if the condition leaves out a list of service accounts, and nothing else.
bool is_list_of_accounts(std::string_view expression) {
  if (!expression.starts_with(kTrustedBegin) || !expression.ends_with(')')) return false;
  expression.remove_prefix(kTrustedBegin.size());
  expression.remove_suffix(1);
  json::error_code error;
  const json::value list = json::parse(expression, error);
  if (error || !list.is_array()) return false;
  return std::all_of(list.get_array().begin(), list.get_array().end(), [](const json::value& one) {
    return one.is_string() && std::string_view(one.get_string()).starts_with("system:serviceaccount:");
  });
}

// Returns the namespaces that the selector leaves out; nothing if it does more than that.
std::optional<std::set<std::string>> left_out_by(const json::value& value) {
  const json::object* selector = value.if_object();
  if (selector == nullptr || selector->size() != 1) return std::nullopt;
  const auto terms = objects_at(*selector, {"matchExpressions"});
  if (terms.size() != 1 || text_at(*terms.front(), {"key"}) != kNamespaceLabel ||
      text_at(*terms.front(), {"operator"}) != "NotIn")
    return std::nullopt;
  std::set<std::string> names;
  const json::array* values = array_at(*terms.front(), {"values"});
  if (values == nullptr) return std::nullopt;
  for (const json::value& one : *values) {
    if (const json::string* name = one.if_string()) names.emplace(*name);
  }
  return names;
}

}  // namespace

Result<std::vector<StampedName>> read_stamped_names(const std::string& flag) {
  std::vector<StampedName> names;
  for (std::size_t at = 0; at < flag.size();) {
    const std::size_t end = std::min(flag.find(',', at), flag.size());
    const std::string one = flag.substr(at, end - at);
    const std::size_t equals = one.rfind('=');
    const std::string to = equals == std::string::npos ? std::string() : one.substr(equals + 1);
    if (equals == std::string::npos || (!to.empty() && (to.find(':') != to.size() - 1 || to == kOfNamespace)))
      return Error{ErrorCode::kInvalid,
                   "--user-stamps: '" + shown(one, 80) +
                       "' does not say which users of the API server are which of berth; give FROM=TO as "
                       "oidc:=corp:, where TO is an issuer with its colon, or nothing"};
    names.push_back({one.substr(0, equals), to});
    at = end + 1;
  }
  std::stable_sort(names.begin(), names.end(),
                   [](const StampedName& a, const StampedName& b) { return a.from.size() > b.from.size(); });
  return names;
}

std::span<const std::string_view> stamp_policies() { return kNames; }

std::string digest_of_stamp_policy(const json::object& policy) { return digest_of(parts_of(policy)); }

Result<StampRules> read_stamp_policy(std::string_view name, const json::object& policy) {
  const std::string words = "the MutatingAdmissionPolicy " + std::string(name);
  const auto differs = [&words](const std::string& what) {
    return Error{ErrorCode::kInvalid, words + " is not the one of berth's chart: " + what};
  };
  const Parts parts = parts_of(policy);
  const auto known =
      std::find_if(kPolicies.begin(), kPolicies.end(), [&](const Policy& one) { return one.name == name; });
  const std::string digest = digest_of(parts);
  if (known == kPolicies.end() || digest != known->digest)
    return differs("it does something else than that of this version (" + digest + ")");
  if (!is_list_of_accounts(parts.trusted)) return differs("its condition " + std::string(kTrusted));
  auto left_out = left_out_by(parts.selector);
  if (!left_out) return differs("its namespaceSelector chooses by more than names that are left out");
  const std::string_view mark = parts.mark;
  if (mark.size() < 2 || !mark.starts_with('\'') || !mark.ends_with('\'') || !is_mark(mark.substr(1, mark.size() - 2)))
    return differs("its mark has fewer than 8 letters and digits");
  return StampRules{std::string(mark.substr(1, mark.size() - 2)), std::move(*left_out)};
}

Result<void> check_stamp_binding(std::string_view name, const json::object& binding) {
  const json::object* spec = object_at(binding, {"spec"});
  if (spec != nullptr && spec->size() == 1 && text_at(*spec, {"policyName"}) == name) return {};
  return Error{ErrorCode::kInvalid, "the MutatingAdmissionPolicyBinding " + std::string(name) +
                                        " is not the one of berth's chart: it binds policy " + std::string(name) +
                                        " for a part of the cluster only, or another one"};
}

std::string user_of_stamp(std::string_view stamp, const std::string& name_space, const StampRules& rules,
                          const std::vector<StampedName>& names) {
  if (rules.mark.empty() || rules.left_out.contains(name_space)) return {};
  if (!stamp.starts_with(rules.mark) || stamp.size() <= rules.mark.size() || stamp[rules.mark.size()] != ' ') return {};
  const std::string_view name = stamp.substr(rules.mark.size() + 1);
  if (name.starts_with("system:")) return {};
  const auto taken =
      std::find_if(names.begin(), names.end(), [&](const StampedName& one) { return name.starts_with(one.from); });
  if (taken == names.end()) return {};
  const std::string_view rest = name.substr(taken->from.size());
  std::string user = taken->to + std::string(rest);
  if (!well_formed_issued_name(rest) || user.starts_with(kOfNamespace)) return {};
  return user;
}

}  // namespace berth::kube

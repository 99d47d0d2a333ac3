#include "kube/volume_object.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostTerms = 100;
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

NodeExpression read_expression(const json::object& object, std::string_view given_operator, bool is_field) {
  NodeExpression one;
  one.key = text_at(object, {"key"});
  one.is_field = is_field;
  const auto known = std::find_if(kOperators.begin(), kOperators.end(),
                                  [&](const auto& pair) { return pair.first == given_operator; });
  one.op = known == kOperators.end() ? NodeOperator::kUnknown : known->second;
  if (const json::array* values = array_at(object, {"values"})) {
    for (const json::value& value : *values) {
      if (const json::string* text = value.if_string(); text != nullptr && one.values.size() < kMostValues)
        one.values.emplace_back(text->data(), text->size());
    }
  }
  std::sort(one.values.begin(), one.values.end());
  return one;
}

void read_expressions(const json::object& term, std::string_view member, bool is_field,
                      std::vector<NodeExpression>& into) {
  for (const json::object* one : objects_at(term, {member}))
    into.push_back(read_expression(*one, text_at(*one, {"operator"}), is_field));
}

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t number = 0;
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
      const auto has = value == nullptr ? std::nullopt : number_in(*value);
      const auto bound = one.values.size() == 1 ? number_in(one.values.front()) : std::nullopt;
      if (!has || !bound) return false;
      return one.op == NodeOperator::kGreater ? *has > *bound : *has < *bound;
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

std::string name_of(const PodClaim& claim) { return "claim " + shown(claim.name, 253); }

}  // namespace

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
    if (one.is_field || one.op != NodeOperator::kIn || one.values.size() != 1 || one.key.empty() ||
        one.key.size() > kMostLabelKey)
      return std::nullopt;
    labels.emplace_back(one.key, one.values.front());
  }
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(labels.begin(), labels.end(), same_key) != labels.end()) return std::nullopt;
  return labels;
}

std::string label_of(const NodeRule& rule) {
  Hasher hasher;
  for (const auto& term : rule.terms) {
    hasher.add(static_cast<std::uint64_t>(term.size()));
    for (const NodeExpression& one : term) {
      hasher.add(one.key).add(static_cast<std::uint64_t>(one.op)).add(static_cast<std::uint64_t>(one.is_field));
      hasher.add(static_cast<std::uint64_t>(one.values.size()));
      for (const std::string& value : one.values) hasher.add(value);
    }
  }
  std::array<char, 16> digits{};
  digits.fill('0');
  std::array<char, 16> written{};
  const auto [end, error] = std::to_chars(written.data(), written.data() + written.size(), hasher.digest(), 16);
  std::copy_backward(written.data(), end, digits.data() + digits.size());
  return std::string(kRuleLabel) + std::string(digits.data(), digits.size());
}

ClaimObject read_claim(const json::object& claim) {
  ClaimObject read;
  read.uid = text_at(claim, {"metadata", "uid"});
  read.version = text_at(claim, {"metadata", "resourceVersion"});
  read.storage_class = text_at(claim, {"spec", "storageClassName"});
  read.volume = text_at(claim, {"spec", "volumeName"});
  read.selected_node = annotation_at(claim, kSelectedNode);
  read.leaving = !text_at(claim, {"metadata", "deletionTimestamp"}).empty();
  const std::string phase = text_at(claim, {"status", "phase"});
  read.bound = phase == "Bound" && !read.volume.empty();
  read.lost = phase == "Lost";
  for (const json::object* owner : objects_at(claim, {"metadata", "ownerReferences"})) {
    if (true_at(*owner, {"controller"})) read.owner_uid = text_at(*owner, {"uid"});
  }
  if (const json::array* modes = array_at(claim, {"spec", "accessModes"})) {
    read.for_one_pod = std::any_of(modes->begin(), modes->end(), [](const json::value& mode) {
      return mode.is_string() && mode.get_string() == "ReadWriteOncePod";
    });
  }
  return read;
}

VolumeObject read_volume(const json::object& volume) {
  VolumeObject read;
  if (const json::object* claim = object_at(volume, {"spec", "claimRef"}))
    read.claim = text_at(*claim, {"namespace"}) + "/" + text_at(*claim, {"name"});
  const json::object* required = object_at(volume, {"spec", "nodeAffinity", "required"});
  if (required == nullptr) return read;
  read.rule.emplace();
  for (const json::object* term : objects_at(*required, {"nodeSelectorTerms"})) {
    std::vector<NodeExpression> all;
    read_expressions(*term, "matchExpressions", false, all);
    read_expressions(*term, "matchFields", true, all);
    if (read.rule->terms.size() < kMostTerms) read.rule->terms.push_back(std::move(all));
  }
  return read;
}

StorageClassObject read_storage_class(const json::object& storage_class) {
  StorageClassObject read;
  read.waits_for_consumer = text_at(storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer";
  const std::string provisioner = text_at(storage_class, {"provisioner"});
  read.provisions = !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner";
  const auto topologies = objects_at(storage_class, {"allowedTopologies"});
  if (topologies.empty()) return read;
  read.rule.emplace();
  for (const json::object* term : topologies) {
    std::vector<NodeExpression> all;
    for (const json::object* one : objects_at(*term, {"matchLabelExpressions"}))
      all.push_back(read_expression(*one, "In", false));
    if (read.rule->terms.size() < kMostTerms) read.rule->terms.push_back(std::move(all));
  }
  return read;
}

std::vector<PodClaim> claims_of(const json::object& pod) {
  std::vector<PodClaim> claims;
  for (const json::object* volume : objects_at(pod, {"spec", "volumes"})) {
    PodClaim claim;
    claim.ephemeral = object_at(*volume, {"ephemeral"}) != nullptr;
    claim.name = claim.ephemeral ? text_at(pod, {"metadata", "name"}) + "-" + text_at(*volume, {"name"})
                                 : text_at(*volume, {"persistentVolumeClaim", "claimName"});
    if (!claim.name.empty()) claims.push_back(std::move(claim));
  }
  std::sort(claims.begin(), claims.end(), [](const PodClaim& a, const PodClaim& b) { return a.name < b.name; });
  const auto same = [](const PodClaim& a, const PodClaim& b) { return a.name == b.name; };
  claims.erase(std::unique(claims.begin(), claims.end(), same), claims.end());
  return claims;
}

ClaimVerdict judge(const PodClaim& named, std::string_view pod_uid, const ClaimObject* claim,
                   const VolumeObject* volume, const StorageClassObject* storage_class) {
  const auto waits = [&](const std::string& text) {
    return ClaimVerdict{ClaimStage::kWaits, name_of(named) + text, std::nullopt};
  };
  if (claim == nullptr) return waits(" does not exist");
  if (claim->leaving) return waits(" is being deleted");
  if (claim->lost) return waits(" has lost its volume");
  if (named.ephemeral && claim->owner_uid != pod_uid) return waits(" was not made for this pod");
  if (claim->bound) {
    if (volume == nullptr) return waits(": its volume " + shown(claim->volume, 253) + " does not exist");
    return {ClaimStage::kReady, {}, volume->rule};
  }
  if (!claim->volume.empty() || claim->storage_class.empty()) return waits(" is not bound yet");
  const std::string its_class = ": its StorageClass " + shown(claim->storage_class, 253);
  if (storage_class == nullptr) return waits(" is not bound yet" + its_class + " does not exist");
  if (!storage_class->waits_for_consumer) return waits(" is not bound yet");
  if (!storage_class->provisions) {
    return waits(" is not bound yet" + its_class +
                 " makes no volumes, and berth chooses none of those that there are; name one in spec.volumeName");
  }
  return {ClaimStage::kChoosesNode, {}, storage_class->rule};
}

std::string select_node_patch(const ClaimObject& claim, const std::string& node) {
  return json::serialize(json::object{
      {"metadata",
       {{"uid", claim.uid}, {"resourceVersion", claim.version}, {"annotations", {{kSelectedNode, node}}}}}});
}

}  // namespace berth::kube

#include "kube/pod_affinity.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <string_view>

#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
// Limits of a job of berth.
constexpr std::size_t kMostJobLabels = 32;
constexpr std::size_t kMostKey = 63;
constexpr std::size_t kMostTermsOfPod = 16;

// Labels that a controller gives to each pod anew, so no term means them. The core would keep an entry for each.
constexpr std::array<std::string_view, 7> kOfOnePod{"apps.kubernetes.io/pod-index",
                                                    "batch.kubernetes.io/controller-uid",
                                                    "batch.kubernetes.io/job-completion-index",
                                                    "batch.kubernetes.io/job-name",
                                                    "controller-uid",
                                                    "job-name",
                                                    "statefulset.kubernetes.io/pod-name"};

constexpr std::array<std::string_view, 5> kOfOperators{
    "berth.dev/", "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/", "ray.io/", "training.kubeflow.org/"};

bool is_known_key(std::string_view key) {
  const auto is_prefix = [&](std::string_view prefix) { return key.starts_with(prefix); };
  return !key.empty() && key.size() <= kMostKey && std::none_of(kOfOperators.begin(), kOfOperators.end(), is_prefix) &&
         std::find(kOfOnePod.begin(), kOfOnePod.end(), key) == kOfOnePod.end();
}

void read_labels(const json::object& pod, Labels& labels) {
  if (const json::object* all = object_at(pod, {"metadata", "labels"})) {
    for (const auto& [key, value] : *all) {
      if (const json::string* text = value.if_string(); text != nullptr && is_known_key(key))
        labels.emplace_back(key, std::string(*text));
    }
  }
  if (labels.empty()) return;  // most pods of gangs have none of their own: then terms cost their jobs nothing
  std::sort(labels.begin(), labels.end());
  if (labels.size() >= kMostJobLabels) labels.resize(kMostJobLabels - 1);
  labels.emplace_back(kNamespaceLabel, text_at(pod, {"metadata", "namespace"}));
  std::sort(labels.begin(), labels.end());
}

std::vector<std::string> texts_at(const json::object& object, std::string_view member) {
  std::vector<std::string> texts;
  if (const json::array* all = array_at(object, {member})) {
    for (const json::value& one : *all) {
      if (const json::string* text = one.if_string()) texts.emplace_back(text->data(), text->size());
    }
  }
  return texts;
}

// Multiplies the terms: each of them with each of the values.
void demand(std::vector<Labels>& all, const std::string& key, const std::vector<std::string>& values) {
  std::vector<Labels> more;
  for (const Labels& labels : all) {
    for (const std::string& value : values) {
      more.push_back(labels);
      more.back().emplace_back(key, value);
      if (more.size() > kMostTermsOfPod) return all.swap(more);
    }
  }
  all.swap(more);
}

// Reads the pods that a term means as sets of labels of which any is enough. Returns what cannot be said so.
std::string read_selector(const json::object& selector, std::vector<Labels>& any) {
  if (const json::object* equal = object_at(selector, {"matchLabels"})) {
    for (const auto& [key, value] : *equal) {
      const json::string* text = value.if_string();
      if (text == nullptr || !is_known_key(key)) return "the label " + shown(key, 80);
      demand(any, std::string(key), {std::string(*text)});
    }
  }
  for (const json::object* one : objects_at(selector, {"matchExpressions"})) {
    const std::string key = text_at(*one, {"key"});
    const std::vector<std::string> values = texts_at(*one, "values");
    if (text_at(*one, {"operator"}) != "In" || values.empty())
      return "the operator " + shown(text_at(*one, {"operator"}), 40) + " for " + shown(key, 80);
    if (!is_known_key(key)) return "the label " + shown(key, 80);
    demand(any, key, values);
  }
  return {};
}

std::string read_term(const json::object& term, const std::string& own_namespace, std::vector<PodTerm>& terms) {
  const json::object* selector = object_at(term, {"labelSelector"});
  if (selector == nullptr) return {};  // it means no pod
  std::vector<Labels> any(1);
  if (std::string problem = read_selector(*selector, any); !problem.empty()) return problem;
  std::vector<std::string> spaces = texts_at(term, "namespaces");
  const json::object* chosen = object_at(term, {"namespaceSelector"});
  if (chosen != nullptr && !chosen->empty()) return "a namespaceSelector other than {}";
  if (chosen == nullptr) {
    if (spaces.empty()) spaces.push_back(own_namespace);
    demand(any, std::string(kNamespaceLabel), spaces);
  } else if (any.front().empty()) {
    return "all pods of all namespaces";
  }
  const std::string key = text_at(term, {"topologyKey"});
  for (Labels& labels : any) {
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (std::adjacent_find(labels.begin(), labels.end(), same) != labels.end()) continue;  // it means no pod
    terms.push_back({std::move(labels), key});
  }
  if (terms.size() > kMostTermsOfPod) return "over " + std::to_string(kMostTermsOfPod) + " kinds of pods";
  return {};
}

}  // namespace

PodTerms read_pod_terms(const json::object& pod) {
  PodTerms read;
  read_labels(pod, read.labels);
  const std::string space = text_at(pod, {"metadata", "namespace"});
  for (const json::object* term : objects_at(pod, {"spec", "affinity", "podAntiAffinity", kRequired})) {
    if (const std::string problem = read_term(*term, space, read.apart); !problem.empty() && read.problem.empty())
      read.problem = "required podAntiAffinity with " + problem;
  }
  for (const json::object* term : objects_at(pod, {"spec", "affinity", "podAffinity", kRequired})) {
    std::vector<PodTerm> any;
    std::string problem = read_term(*term, space, any);
    if (problem.empty() && any.size() != 1)
      problem = any.empty() ? "a term that means no pod" : "several values or namespaces";
    if (!problem.empty() && read.problem.empty()) read.problem = "required podAffinity with " + problem;
    read.near.insert(read.near.end(), any.begin(), any.end());
  }
  return read;
}

}  // namespace berth::kube

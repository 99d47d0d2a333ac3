// Which nodes pods and their volumes allow: rules that the core judges by the nodes' own labels and names.

#include <algorithm>

#include "kube/cluster_impl.h"

namespace berth::kube {

// Returns what the pod and its volumes demand of a node's labels, beside the pod's selector; equal for pods that demand
// the same.
std::vector<NodeRule> Cluster::Impl::rules_of(const Pod& pod) const {
  std::vector<NodeRule> rules;
  if (pod.object.wish.affinity) rules.push_back(*pod.object.wish.affinity);
  for (const PodClaim& claim : pod.object.claims) {
    if (const ClaimVerdict verdict = verdict_of(pod, claim); verdict.rule) rules.push_back(*verdict.rule);
  }
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  return rules;
}

Labels Cluster::Impl::labels_of_node(const Node& node) const {
  Labels labels = node.object.spec.labels;
  for (const auto& [label, attaching] : attachings_) {
    if (can_attach(node, attaching.first, attaching.second)) labels.emplace_back(label, "yes");
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

// Returns true if the pod's own selector and affinity, and its volumes, allow the node.
bool Cluster::Impl::allows_node(const Pod& pod, const Node& node) const {
  const Labels& selector = pod.object.wish.node_selector;
  const NodeSpec& spec = node.object.spec;
  if (!std::includes(spec.labels.begin(), spec.labels.end(), selector.begin(), selector.end())) return false;
  const std::vector<NodeRule> rules = rules_of(pod);
  return std::all_of(rules.begin(), rules.end(),
                     [&](const NodeRule& rule) { return allows(rule, spec.name, spec.labels); });
}

}  // namespace berth::kube

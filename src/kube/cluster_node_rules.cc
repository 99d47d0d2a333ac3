// Which nodes pods and their volumes allow, as labels of nodes: the core selects by labels with one value. Where the
// labels that the nodes have cannot say it, berth gives the nodes that a rule allows a label of its own.

#include <algorithm>

#include "kube/cluster_impl.h"

namespace berth::kube {
namespace {

// A new rule is told of each node that it allows. So a namespace may make so many of them and no more, counted until an
// hour after their last use.
constexpr std::int64_t kMostOfNamespace = 32;
constexpr std::size_t kMostAffinities = 512;
constexpr std::int64_t kForgetMs = 3'600'000;
constexpr std::int64_t kSweepMs = 60'000;

}  // namespace

// Returns what the pod asks of its node as labels: its own selector, and what its volumes allow. `rules`: those for
// which a label of berth stands.
Labels Cluster::Impl::selector_of(const Pod& pod, std::vector<NodeRule>* rules) const {
  Labels all = pod.object.wish.node_selector;
  const auto clashes = [&](const Labels& labels) {
    return std::any_of(labels.begin(), labels.end(), [&](const auto& one) {
      return std::any_of(all.begin(), all.end(),
                         [&](const auto& other) { return other.first == one.first && other.second != one.second; });
    });
  };
  for (const PodClaim& claim : pod.object.claims) {
    const ClaimVerdict verdict = verdict_of(pod, claim);
    if (!verdict.rule) continue;
    const auto labels = labels_of(*verdict.rule);
    if (labels && !clashes(*labels)) {
      all.insert(all.end(), labels->begin(), labels->end());
      continue;
    }
    all.emplace_back(label_of(*verdict.rule), "yes");
    if (rules != nullptr) rules->push_back(*verdict.rule);
  }
  const Labels attaching = attaching_labels(pod);
  all.insert(all.end(), attaching.begin(), attaching.end());
  if (pod.object.wish.affinity) all.emplace_back(label_of(*pod.object.wish.affinity, kAffinityLabel), "yes");
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Labels Cluster::Impl::labels_of_node(const Node& node) const {
  const NodeSpec& spec = node.object.spec;
  Labels labels = spec.labels;
  for (const auto& [label, rule] : rules_) {
    if (allows(rule, spec.name, spec.labels)) labels.emplace_back(label, "yes");
  }
  for (const auto& [label, affinity] : affinities_) {
    if (allows(affinity.rule, spec.name, spec.labels)) labels.emplace_back(label, "yes");
  }
  for (const auto& [label, attaching] : attachings_) {
    if (can_attach(node, attaching.first, attaching.second)) labels.emplace_back(label, "yes");
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

// Returns true if the pod's own selector and affinity, and its volumes, allow the node.
bool Cluster::Impl::allows_node(const Pod& pod, const Node& node) const {
  const PodWish& wish = pod.object.wish;
  const NodeSpec& spec = node.object.spec;
  if (!std::includes(spec.labels.begin(), spec.labels.end(), wish.node_selector.begin(), wish.node_selector.end()))
    return false;
  if (wish.affinity && !allows(*wish.affinity, spec.name, spec.labels)) return false;
  return std::all_of(pod.object.claims.begin(), pod.object.claims.end(), [&](const PodClaim& claim) {
    const ClaimVerdict verdict = verdict_of(pod, claim);
    return !verdict.rule || allows(*verdict.rule, spec.name, spec.labels);
  });
}

// Gives the nodes the labels that stand for what the pod's volumes allow.
void Cluster::Impl::note_rules(const Pod& pod) {
  if (pod.object.claims.empty()) return;
  note_attaching(pod);
  std::vector<NodeRule> rules;
  selector_of(pod, &rules);
  for (NodeRule& rule : rules) {
    const auto [one, fresh] = rules_.try_emplace(label_of(rule), std::move(rule));
    if (fresh) label_nodes(one->second);
  }
}

void Cluster::Impl::label_nodes(const NodeRule& rule) {
  if (!open_) return;
  for (auto& [name, node] : nodes_) {
    if (allows(rule, name, node.object.spec.labels)) update_node(name, node);
  }
}

// Gives the nodes the label that stands for the pod's affinity, as far as its namespace may have one more.
void Cluster::Impl::note_affinity(const Pod& pod) {
  if (!pod.object.wish.affinity) return;
  const std::string label = label_of(*pod.object.wish.affinity, kAffinityLabel);
  const auto known = affinities_.find(label);
  if (known != affinities_.end()) {
    known->second.used = now_;
  } else {
    const auto of_it = std::count_if(affinities_.begin(), affinities_.end(),
                                     [&](const auto& one) { return one.second.name_space == pod.object.name_space; });
    if (of_it >= kMostOfNamespace || affinities_.size() >= kMostAffinities) return;
    const auto made = affinities_.try_emplace(label, Affinity{*pod.object.wish.affinity, pod.object.name_space, now_});
    label_nodes(made.first->second.rule);
  }
  if (const auto group = groups_.find(pod.group); group != groups_.end()) group->second.affinities.insert(label);
}

// Returns why a node affinity among the pods' is not obeyed yet; empty: all are.
std::string Cluster::Impl::why_affinity_waits(const std::vector<Pod*>& pods) const {
  for (const Pod* pod : pods) {
    const auto& affinity = pod->object.wish.affinity;
    if (!affinity || affinities_.contains(label_of(*affinity, kAffinityLabel))) continue;
    return "namespace " + pod->object.name_space + " has asked for " + std::to_string(kMostOfNamespace) +
           " different required node affinities within an hour, or all together for " +
           std::to_string(kMostAffinities) + ": berth tells no more apart. It is tried again every minute";
  }
  return {};
}

// Forgets the affinities that nothing has used for a while. A node loses the label when it is told of the next time.
void Cluster::Impl::sweep_affinities() {
  if (affinities_.empty() || (!affinities_swept_.is_never() && now_ - affinities_swept_ < kSweepMs)) return;
  affinities_swept_ = now_;
  const auto use = [this](const PodObject& pod) {
    if (!pod.wish.affinity) return;
    const auto known = affinities_.find(label_of(*pod.wish.affinity, kAffinityLabel));
    if (known != affinities_.end()) known->second.used = now_;
  };
  for (const auto& [uid, pod] : pods_) use(pod.object);
  for (const auto& [id, suspended] : suspensions_) {
    for (const PodObject& pod : suspended.object.pods) use(pod);
  }
  for (const auto& [key, group] : groups_) {
    for (const std::string& label : group.affinities) {
      if (const auto known = affinities_.find(label); known != affinities_.end()) known->second.used = now_;
    }
  }
  std::erase_if(affinities_, [this](const auto& one) { return now_ - one.second.used >= kForgetMs; });
}

}  // namespace berth::kube

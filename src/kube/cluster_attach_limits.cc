// How many volumes a node attaches (CSINode). The core does not count volumes: the nodes that can attach as many more
// as a pod brings have a label of berth's own, which its job asks for. Only drivers that name a limit are counted.

#include <algorithm>
#include <bit>
#include <utility>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {

void Cluster::Impl::limit_attaching(const std::string& node, AttachLimits limits) {
  AttachLimits& known = attach_limits_[node];
  for (const auto& [driver, count] : known) {
    if (--limited_drivers_[driver] == 0) limited_drivers_.erase(driver);
  }
  for (const auto& [driver, count] : limits) ++limited_drivers_[driver];
  known = std::move(limits);
  if (known.empty()) attach_limits_.erase(node);
  if (attachings_.empty()) return;
  if (const auto found = nodes_.find(node); found != nodes_.end()) update_node(node, found->second);
}

// Returns how many volumes of each limited driver the pod brings, rounded down to a power of two, so that a tenant
// cannot make any number of labels. What that lets pass is found before the pod is bound.
std::map<std::string, std::int64_t> Cluster::Impl::attaching_of(const Pod& pod) const {
  std::map<std::string, std::int64_t> counts;
  if (limited_drivers_.empty()) return counts;
  for (const PodClaim& claim : pod.object.claims) {
    const ClaimVerdict verdict = verdict_of(pod, claim);
    if (limited_drivers_.contains(verdict.driver)) ++counts[verdict.driver];
  }
  for (auto& [driver, count] : counts)
    count = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count)));
  return counts;
}

// Returns the ids of the claims whose volumes the node has attached for pods, or will have.
std::set<std::string> Cluster::Impl::attached_to(const std::string& node, const std::string& driver) const {
  std::set<std::string> ids;
  const auto on_it = claim_pods_on_.find(node);
  if (on_it == claim_pods_on_.end()) return ids;
  for (const std::string& uid : on_it->second) {
    const Pod& pod = pods_.at(uid);
    for (const PodClaim& claim : pod.object.claims) {
      if (verdict_of(pod, claim).driver == driver) ids.insert(id_of_claim(pod, claim));
    }
  }
  return ids;
}

bool Cluster::Impl::can_attach(const Node& node, const std::string& driver, std::int64_t count) const {
  const std::string& name = node.object.spec.name;
  const auto limits = attach_limits_.find(name);
  if (limits == attach_limits_.end()) return true;
  const auto limit = limits->second.find(driver);
  if (limit == limits->second.end()) return true;
  if (!node.attached_full_at.is_never() && now_ - node.attached_full_at < kAvoidMs) return false;
  return static_cast<std::int64_t>(attached_to(name, driver).size()) + count <= limit->second;
}

Labels Cluster::Impl::attaching_labels(const Pod& pod) const {
  Labels labels;
  for (const auto& [driver, count] : attaching_of(pod)) labels.emplace_back(label_of_attaching(driver, count), "yes");
  return labels;
}

// Gives the nodes the labels that the pod's job asks for.
void Cluster::Impl::note_attaching(const Pod& pod) {
  bool fresh = false;
  for (const auto& [driver, count] : attaching_of(pod))
    fresh = attachings_.try_emplace(label_of_attaching(driver, count), driver, count).second || fresh;
  if (!fresh || !open_) return;
  for (auto& [name, node] : nodes_) update_node(name, node);
}

// Counts the volumes of the pod on its node, or on that to which it is being bound.
void Cluster::Impl::count_attached(Pod& pod) {
  if (pod.object.claims.empty()) return;
  std::string node = is_over(pod.object) ? std::string() : pod.object.node;
  const auto task = pod.assigned ? tasks_.find(*pod.assigned) : tasks_.end();
  const bool is_planned = task != tasks_.end() &&
                          (task->second.phase == TaskPhase::kBinding || task->second.phase == TaskPhase::kWaitsForGang);
  if (node.empty() && is_planned) node = task->second.start.node;
  if (node == pod.attached_on) return;
  const std::string before = std::exchange(pod.attached_on, node);
  count_attached(pod, before, false);
  count_attached(pod, node, true);
}

void Cluster::Impl::count_attached(const Pod& pod, const std::string& node, bool there) {
  if (node.empty() || pod.object.claims.empty()) return;
  std::set<std::string>& uids = claim_pods_on_[node];
  if (there)
    uids.insert(pod.object.uid);
  else
    uids.erase(pod.object.uid);
  if (uids.empty()) claim_pods_on_.erase(node);
  if (attachings_.empty()) return;
  if (const auto found = nodes_.find(node); found != nodes_.end()) update_node(node, found->second);
}

// Ends the start of a task whose volumes would be too many for its node, as when several were planned there at once.
// The node is avoided for a while, so that the next attempt goes elsewhere.
bool Cluster::Impl::attaches_too_many(const TaskKey& key, Task& task, const Pod& pod) {
  const auto found = nodes_.find(task.start.node);
  const auto limits = attach_limits_.find(task.start.node);
  if (found == nodes_.end() || limits == attach_limits_.end() || pod.object.claims.empty()) return false;
  for (const auto& [driver, limit] : limits->second) {
    std::set<std::string> ids = attached_to(found->first, driver);
    const std::size_t before = ids.size();
    for (const PodClaim& claim : pod.object.claims) {
      if (verdict_of(pod, claim).driver == driver) ids.insert(id_of_claim(pod, claim));
    }
    if (ids.size() == before || static_cast<std::int64_t>(ids.size()) <= limit) continue;
    found->second.attached_full_at = now_;
    fail_start(key, task,
               "node " + found->first + " attaches " + std::to_string(limit) + " volumes of driver " +
                   shown(driver, 80) + ", and has " + std::to_string(before));
    return true;
  }
  return false;
}

}  // namespace berth::kube

// The number of pods that a node takes. The core does not count pods: a node that has as many as it takes is tainted.

#include <algorithm>

#include "kube/cluster_impl.h"

namespace berth::kube {

// Counts the pod on its node, or on that to which it is being bound.
void Cluster::Impl::count_pod(Pod& pod) {
  std::string node = is_over(pod.object) ? std::string() : pod.object.node;
  const auto task = pod.assigned ? tasks_.find(*pod.assigned) : tasks_.end();
  const bool is_planned = task != tasks_.end() && (task->second.phase == TaskPhase::kBinding ||
                                                   task->second.phase == TaskPhase::kWaitsForVolumes);
  if (node.empty() && is_planned) node = task->second.start.node;
  if (node == pod.counted_on) return;
  const auto add = [this](const std::string& name, std::int64_t more) {
    if (name.empty()) return;
    const auto known = nodes_.find(name);
    const bool took = known != nodes_.end() && takes_pods(known->second);
    std::int64_t& count = pods_on_[name];
    count += more;
    if (count == 0) pods_on_.erase(name);
    if (known != nodes_.end() && took != takes_pods(known->second)) update_node(name, known->second);
  };
  const std::string before = pod.counted_on;
  pod.counted_on = node;
  count_attached(pod, before, false);
  count_attached(pod, node, true);
  add(before, -1);
  add(node, 1);
}

bool Cluster::Impl::takes_pods(const Node& node) const {
  if (node.object.pods <= 0) return true;
  if (!node.overfull_at.is_never() && now_ - node.overfull_at < kAvoidMs) return false;
  const auto count = pods_on_.find(node.object.spec.name);
  return count == pods_on_.end() || count->second < node.object.pods;
}

// Ends the start of a task that would be one pod too many on its node, as when several were planned there at once. The
// node is avoided for a while, so that the next attempt goes elsewhere.
bool Cluster::Impl::is_one_too_many(const TaskKey& key, Task& task) {
  const auto found = nodes_.find(task.start.node);
  if (found == nodes_.end() || found->second.object.pods <= 0) return false;
  Node& node = found->second;
  const auto count = pods_on_.find(found->first);
  if (count == pods_on_.end() || count->second < node.object.pods) return false;
  node.overfull_at = now_;
  exit_task(key, task,
            {ExitReason::kStartFailed, 1,
             "node " + found->first + " takes " + std::to_string(node.object.pods) + " pods, and has them"});
  return true;
}

}  // namespace berth::kube

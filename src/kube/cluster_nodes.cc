// Nodes: registered as the API server shows them, less what pods use that berth did not place.

#include <algorithm>

#include "kube/cluster_impl.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

// A device plugin that starts again shows no devices for a moment: GPUs that are missing while tasks run are believed
// to be gone after this time.
constexpr std::int64_t kFewerGpusMs = 60'000;

}  // namespace

void Cluster::Impl::observe_node(const boost::json::object& object, bool deleted) {
  const std::string id = text_at(object, {"metadata", "name"});
  if (deleted) return node_gone(id);
  auto read = read_node(object, options_.cell, options_.topology);
  if (!read) return warn("node " + shown(id, 80) + " is passed over: " + read.error().message);
  Node& node = nodes_[id];
  if (read->notes != node.object.notes) {
    for (const std::string& note : read->notes) warn("node " + shown(id, 80) + ": " + note);
  }
  if (!node.object.uid.empty() && node.object.uid != read->uid && node.registered)  // another machine of this name
    tell_status(id, node, NodeStatus::kLost, "its Node object was replaced");
  node.object = std::move(*read);
  update_node(id, node);
}

void Cluster::Impl::node_gone(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  if (found->second.registered) tell_status(name, found->second, NodeStatus::kLost, "its Node object was deleted");
  nodes_.erase(found);
}

bool Cluster::Impl::runs_tasks(const std::string& node) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& one) {
    return one.second.start.node == node && one.second.phase != TaskPhase::kExited;
  });
}

std::set<std::size_t> Cluster::Impl::gpus_in_use(const std::string& node) const {
  std::set<std::size_t> used;
  for (const auto& [key, task] : tasks_) {
    if (task.start.node != node || task.phase == TaskPhase::kExited) continue;
    for (const std::string& uuid : task.start.gpu_uuids) {
      const std::size_t colon = uuid.rfind(':');
      if (colon != std::string::npos) used.insert(static_cast<std::size_t>(std::atoi(uuid.c_str() + colon + 1)));
    }
  }
  return used;
}

NodeSpec Cluster::Impl::spec_of(const std::string& name, const Node& node) const {
  NodeSpec spec = node.object.spec;
  const auto used = foreign_.find(name);
  const Usage foreign = used == foreign_.end() ? Usage{} : used->second;
  spec.cpu_milli = std::max<std::int64_t>(0, spec.cpu_milli - foreign.cpu_milli);
  spec.memory_mib = std::max<std::int64_t>(0, spec.memory_mib - foreign.memory_mib);
  for (std::size_t index = 0; index < spec.gpus.size(); ++index)
    spec.gpus[index].healthy = !node.blocked.contains(index);
  spec.labels = labels_of_node(node);
  if (!takes_pods(node)) {
    const Taint full{"berth.dev/no-more-pods", ""};
    const auto after = [](const Taint& a, const Taint& b) { return a.key < b.key; };
    spec.taints.insert(std::lower_bound(spec.taints.begin(), spec.taints.end(), full, after), full);
  }
  return spec;
}

// Returns how many of the node's GPUs foreign pods use.
std::size_t Cluster::Impl::foreign_gpus(const std::string& name, const Node& node) const {
  const auto foreign = foreign_.find(name);
  const std::int64_t gpus = foreign == foreign_.end() ? 0 : std::max<std::int64_t>(0, foreign->second.gpus);
  return std::min(static_cast<std::size_t>(gpus), node.object.spec.gpus.size());
}

// Returns true if time alone may change what is reported of the node.
bool Cluster::Impl::is_unsettled(const std::string& name, const Node& node) const {
  return !node.overfull_at.is_never() || !node.fewer_since.is_never() ||
         node.blocked.size() != foreign_gpus(name, node);
}

// Chooses which of the counted GPUs stand for those of foreign pods: idle ones, and those that did before.
void Cluster::Impl::update_foreign_gpus(const std::string& name, Node& node) {
  const std::size_t all = node.object.spec.gpus.size();
  const std::size_t wanted = foreign_gpus(name, node);
  std::erase_if(node.blocked, [&](std::size_t index) { return index >= all; });
  while (node.blocked.size() > wanted) {
    const std::size_t freed = *node.blocked.begin();
    node.blocked.erase(freed);
  }
  if (node.blocked.size() == wanted) return;
  const std::set<std::size_t> used = gpus_in_use(name);
  for (std::size_t index = all; index > 0 && node.blocked.size() < wanted; --index) {
    if (!used.contains(index - 1)) node.blocked.insert(index - 1);
  }
}

void Cluster::Impl::tell_status(const std::string& name, Node& node, NodeStatus status, const std::string& why) {
  if (node.status == status) return;
  node.status = status;
  if (open_) command(ReportNodeStatus{name, status, why});
}

// Reports what has changed of the node since it was registered.
void Cluster::Impl::update_node(const std::string& name, Node& node) {
  if (!open_) return;
  if (node.object.out_of_service) {
    if (node.registered) tell_status(name, node, NodeStatus::kLost, "it is tainted node.kubernetes.io/out-of-service");
    node.registered.reset();
    return;
  }
  if (!node.object.ready && !node.registered) return;  // it joins when it is ready
  update_foreign_gpus(name, node);
  if (takes_pods(node)) node.overfull_at = Timestamp::never();
  NodeSpec spec = spec_of(name, node);
  if (node.registered && spec.gpus.size() < node.registered->gpus.size() && runs_tasks(name)) {
    if (node.fewer_since.is_never()) node.fewer_since = now_;
    if (now_ - node.fewer_since < kFewerGpusMs) spec.gpus = node.registered->gpus;
  } else {
    node.fewer_since = Timestamp::never();
  }
  if (!node.registered || node.status == NodeStatus::kLost || spec != *node.registered) {
    command(RegisterNode{spec});
    node.registered = std::move(spec);
    node.status = NodeStatus::kReady;
  }
  tell_status(name, node, node.object.ready ? NodeStatus::kReady : NodeStatus::kUnknown, node.object.why);
}

}  // namespace berth::kube

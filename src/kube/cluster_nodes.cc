// Nodes: registered as the API server shows them, and what pods use of them that berth did not place.

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
  auto read = read_node(object, options_.cell, options_.topology, options_.devices);
  if (!read) {
    unread_nodes_.insert(id);
    return warn("node " + shown(id, 80) + " is passed over: " + read.error().message);
  }
  Node& node = nodes_[id];
  if (read->notes != node.object.notes) {
    for (const std::string& note : read->notes) warn("node " + shown(id, 80) + ": " + note);
  }
  if (!node.object.uid.empty() && node.object.uid != read->uid && node.is_known) {  // another machine of this name
    tell_status(id, node, NodeStatus::kLost, "its Node object was replaced");
    node.registered.reset();
  }
  node.object = std::move(*read);
  update_node(id, node);
}

void Cluster::Impl::node_gone(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  // Even if it is lost already, by the taint out-of-service: only now it is no more part of the fleet.
  if (open_ && (found->second.is_known || found->second.status == NodeStatus::kLost))
    command(ReportNodeStatus{name, NodeStatus::kLost, "its Node object was deleted", true});
  nodes_.erase(found);
}

// Reports what has become of a node while berth was away.
void Cluster::Impl::tell_of_known_node(const KnownNode& known) {
  const auto found = nodes_.find(known.name);
  if (found == nodes_.end()) {
    if (!unread_nodes_.contains(known.name))
      command(ReportNodeStatus{known.name, NodeStatus::kLost, "its Node object was deleted", true});
    return;
  }
  Node& node = found->second;
  const NodeObject& now = node.object;
  if (known.lost) {
    node.status = NodeStatus::kLost;
    return;
  }
  if (!known.machine.empty() && known.machine != now.uid)
    return tell_status(known.name, node, NodeStatus::kLost, "its Node object was replaced");
  node.is_known = true;  // it may be deleted or replaced before it is ready
  if (now.out_of_service)
    return tell_status(known.name, node, NodeStatus::kLost, "it is tainted node.kubernetes.io/out-of-service");
  if (!now.ready) tell_status(known.name, node, NodeStatus::kUnknown, now.why);
}

bool Cluster::Impl::runs_tasks(const std::string& node) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& one) {
    return one.second.start.node == node && one.second.phase != TaskPhase::kExited;
  });
}

std::set<std::string> Cluster::Impl::gpus_in_use(const std::string& node) const {
  std::set<std::string> used;
  for (const auto& [key, task] : tasks_) {
    if (task.start.node != node || task.phase == TaskPhase::kExited) continue;
    used.insert(task.start.gpu_uuids.begin(), task.start.gpu_uuids.end());
  }
  return used;
}

NodeSpec Cluster::Impl::spec_of(const Node& node) const {
  NodeSpec spec = node.object.spec;
  spec.labels = labels_of_node(node);
  return spec;
}

ForeignReport Cluster::Impl::foreign_of(const std::string& name, const Node& node) const {
  ForeignReport report;
  report.gpus = choose_foreign_gpus(name, node);
  const auto found = foreign_.find(name);
  const Usage used = found == foreign_.end() ? Usage() : found->second;
  report.cpu_milli = std::min(used.cpu_milli, node.object.spec.cpu_milli);
  report.memory_mib = std::min(used.memory_mib, node.object.spec.memory_mib);
  for (const auto& [countable, amount] : node.object.spec.countables) {
    // A kubelet that refuses a pod knows of something that the API server does not show: its node takes none for a
    // while.
    const bool takes_none = countable == kPodsCountable && !node.refused_at.is_never();
    const std::int64_t theirs = takes_none ? amount : count_of(used.countables, countable);
    if (theirs > 0) report.countables.emplace_back(countable, std::min(theirs, amount));
  }
  return report;
}

// Returns how many of the node's GPUs of each resource foreign pods use.
Devices Cluster::Impl::foreign_devices(const std::string& name, const Node& node) const {
  Devices used;
  const auto foreign = foreign_.find(name);
  if (foreign == foreign_.end() || foreign->second.devices.empty()) return used;
  for (const Gpu& gpu : node.object.spec.gpus) {
    const std::string_view resource = resource_of_device(gpu.uuid);
    const std::int64_t beside = count_of(node.object.passed_over, resource);
    if (count_of(used, resource) + beside < count_of(foreign->second.devices, resource)) ++used[std::string(resource)];
  }
  return used;
}

// Returns true if time alone may change what is reported of the node.
bool Cluster::Impl::is_unsettled(const std::string& name, const Node& node) const {
  std::int64_t wanted = 0;
  for (const auto& [resource, count] : foreign_devices(name, node)) wanted += count;
  return !node.attached_full_at.is_never() || !node.refused_at.is_never() || !node.fewer_since.is_never() ||
         static_cast<std::int64_t>(node.foreign.gpus.size()) != wanted;
}

// Chooses which of the counted GPUs stand for those of foreign pods: idle ones, and those that did before.
std::set<std::string> Cluster::Impl::choose_foreign_gpus(const std::string& name, const Node& node) const {
  const std::vector<Gpu>& gpus = node.object.spec.gpus;
  Devices more = foreign_devices(name, node);  // to be chosen
  std::set<std::string> kept;
  for (auto gpu = gpus.rbegin(); gpu != gpus.rend(); ++gpu) {
    const auto wanted = more.find(resource_of_device(gpu->uuid));
    if (!node.foreign.gpus.contains(gpu->uuid) || wanted == more.end() || wanted->second == 0) continue;
    --wanted->second;
    kept.insert(gpu->uuid);
  }
  const bool whole = std::all_of(more.begin(), more.end(), [](const auto& one) { return one.second == 0; });
  const std::set<std::string> used = whole ? std::set<std::string>() : gpus_in_use(name);
  for (auto gpu = gpus.rbegin(); gpu != gpus.rend(); ++gpu) {
    const auto wanted = more.find(resource_of_device(gpu->uuid));
    if (wanted == more.end() || wanted->second == 0 || kept.contains(gpu->uuid) || used.contains(gpu->uuid)) continue;
    --wanted->second;
    kept.insert(gpu->uuid);
  }
  return kept;
}

void Cluster::Impl::tell_status(const std::string& name, Node& node, NodeStatus status, const std::string& why) {
  if (node.status == status) return;
  node.status = status;
  if (status == NodeStatus::kLost) node.is_known = false;
  if (open_) command(ReportNodeStatus{name, status, why});
}

// Reports what has changed of the node since it was registered.
void Cluster::Impl::update_node(const std::string& name, Node& node) {
  if (!open_) return;
  if (node.object.out_of_service) {
    if (node.is_known) tell_status(name, node, NodeStatus::kLost, "it is tainted node.kubernetes.io/out-of-service");
    node.registered.reset();
    return;
  }
  if (!node.object.ready && !node.registered) return;  // it joins when it is ready
  for (Timestamp* at : {&node.attached_full_at, &node.refused_at}) {
    if (now_ - *at >= kAvoidMs) *at = Timestamp::never();
  }
  NodeSpec spec = spec_of(node);
  if (node.registered && spec.gpus.size() < node.registered->gpus.size() && runs_tasks(name)) {
    if (node.fewer_since.is_never()) node.fewer_since = now_;
    if (now_ - node.fewer_since < kFewerGpusMs) spec.gpus = node.registered->gpus;
  } else {
    node.fewer_since = Timestamp::never();
  }
  ForeignReport foreign = foreign_of(name, node);
  const bool is_same = node.registered && node.status != NodeStatus::kLost && spec == *node.registered;
  // What changes of a node out of contact, such as its taints, is told when it is back: a registration says that it is.
  if (!is_same && node.object.ready) {
    node.foreign = std::move(foreign);
    command(RegisterNode{spec, node.foreign});
    node.registered = std::move(spec);
    node.is_known = true;
    node.status = NodeStatus::kReady;
  } else if (is_same && foreign != node.foreign) {
    node.foreign = std::move(foreign);
    command(ReportForeignUse{name, node.foreign});
  }
  tell_status(name, node, node.object.ready ? NodeStatus::kReady : NodeStatus::kUnknown, node.object.why);
}

}  // namespace berth::kube

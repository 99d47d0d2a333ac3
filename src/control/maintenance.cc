#include "control/maintenance.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/utf8.h"
#include "control/validate.h"
#include "model/name.h"

namespace berth::control {

namespace {

using state::Maintenance;
using state::NodeState;
using state::State;

constexpr std::size_t kMostWindows = 1000;
constexpr std::size_t kMostReason = 1000;

bool is_selected(const NodeState& node, const PlanMaintenance& command) {
  const Labels& labels = node.spec.labels;
  const bool labelled = std::all_of(command.labels.begin(), command.labels.end(), [&](const auto& wanted) {
    return std::find(labels.begin(), labels.end(), wanted) != labels.end();
  });
  return node.status != NodeStatus::kLost && labelled && (command.pool.empty() || command.pool == node.spec.pool);
}

// Returns the nodes that the command names, or all nodes that are not lost and have the labels and the pool. Nodes that
// join later are not in the window.
Result<std::vector<NodeId>> nodes_of(const State& state, const PlanMaintenance& command) {
  const bool selects = !command.labels.empty() || !command.pool.empty();
  if (selects == !command.nodes.empty()) return invalid("nodes: name nodes, or select them by pool and labels");
  std::set<NodeId> nodes;
  for (const std::string& name : command.nodes) {
    const NodeState* node = state.node_named(name);
    if (node == nullptr) return not_found("no such node '" + name.substr(0, 200) + "'");
    nodes.insert(node->id);
  }
  for (const NodeState& node : state.nodes()) {
    if (selects && is_selected(node, command)) nodes.insert(node.id);
  }
  if (nodes.empty()) return not_found("no node is of that pool and has those labels");
  return std::vector<NodeId>(nodes.begin(), nodes.end());
}

// Returns the first of "maintenance-1", "maintenance-2", ... that is not used.
std::string free_name(const State& state) {
  for (std::size_t n = 1;; ++n) {
    std::string name = "maintenance-" + std::to_string(n);
    if (!state.maintenance().contains(name)) return name;
  }
}

Result<void> check(const State& state, const PlanMaintenance& command, Timestamp from, Timestamp now) {
  if (!command.name.empty() && !well_formed_name(command.name)) {
    return invalid("name '" + command.name.substr(0, 80) + "' is not a name: " + std::string(kNameRule));
  }
  if (command.for_s < 1 || command.for_s > kMaxSeconds) return invalid("for must be 1 second to 366 days");
  if (from.ms < 0 || from - now > checked_multiply(kMaxSeconds, 1000)) {
    return invalid("from must be within the next 366 days");
  }
  if (from + checked_multiply(command.for_s, 1000) <= now) {
    return invalid("the window would end at " + to_iso8601(from + checked_multiply(command.for_s, 1000)) +
                   ", but it is " + to_iso8601(now) + " already");
  }
  if (command.reason.size() > kMostReason || !is_utf8(command.reason)) {
    return invalid("reason must be UTF-8 of at most " + std::to_string(kMostReason) + " bytes");
  }
  if (state.maintenance().size() >= kMostWindows) {
    return conflict(std::to_string(kMostWindows) + " windows are planned already; cancel some");
  }
  return {};
}

}  // namespace

Result<Reply> plan_maintenance(Batch& batch, const PlanMaintenance& command) {
  const State& state = batch.state();
  const Timestamp from = command.from.ms == 0 ? batch.now() : command.from;
  if (auto ok = check(state, command, from, batch.now()); !ok) return ok.error();
  auto nodes = nodes_of(state, command);
  if (!nodes) return nodes.error();
  MaintenancePlanned event{command.name,   std::move(*nodes), from, from + checked_multiply(command.for_s, 1000),
                           command.reason, command.user};
  const auto known = state.maintenance().find(command.name);
  if (!command.name.empty() && known != state.maintenance().end()) {
    const Maintenance& window = known->second;
    const bool same = window.nodes == event.nodes && window.from == event.from && window.to == event.to;
    if (same) return Reply{.job = {}, .unchanged = true, .name = command.name};
    return conflict("a window '" + command.name + "' is planned already; cancel it or take another name");
  }
  if (event.name.empty()) event.name = free_name(state);
  const Reply reply{.job = {}, .name = event.name};
  batch.emit(std::move(event));
  return reply;
}

Result<Reply> cancel_maintenance(Batch& batch, const CancelMaintenance& command) {
  if (!batch.state().maintenance().contains(command.name)) {
    return not_found("no maintenance window '" + command.name.substr(0, 200) + "' is planned");
  }
  batch.emit(MaintenanceEnded{command.name, true, command.user});
  return Reply{.job = {}, .name = command.name};
}

void reconcile_maintenance(Batch& batch) {
  while (batch.state().next_maintenance() <= batch.now()) {
    const std::string name = batch.state().maintenance_times().begin()->second;
    if (batch.state().maintenance().find(name)->second.begun)
      batch.emit(MaintenanceEnded{name, false, {}});
    else
      batch.emit(MaintenanceBegan{name});
  }
}

}  // namespace berth::control

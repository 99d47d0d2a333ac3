#include "control/node_contact.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "model/document/quantity.h"

namespace berth::control {

namespace {

using state::NodeState;
using state::State;

constexpr std::int64_t kFewestSilent = 3;

bool is_mass_loss(const State& state) {
  const std::int64_t percent = state.config().scheduling.mass_loss_percent;
  const auto silent = static_cast<std::int64_t>(state.nodes_in(NodeStatus::kUnknown));
  const std::int64_t known = silent + static_cast<std::int64_t>(state.nodes_in(NodeStatus::kReady));
  return percent > 0 && silent >= kFewestSilent && silent * 100 >= percent * known;
}

}  // namespace

void declare_lost(Batch& batch, const NodeState& node, const std::string& why) {
  const NodeId id = node.id;
  const auto tasks = node.tasks;
  batch.emit(NodeStatusChanged{id, NodeStatus::kLost, why, false});
  for (const auto& [job, task] : tasks) {
    const state::JobState& owner = *batch.state().job(job);
    batch.emit(TaskExited{job, owner.attempt->number, task, owner.attempt->tasks[task].incarnation,
                          ExitReason::kNodeLost, 1, "node " + batch.state().node(id).spec.name + " was lost"});
  }
}

void lose(Batch& batch, const NodeState& node, const std::string& why) {
  if (node.status != NodeStatus::kUnknown || !is_mass_loss(batch.state())) return declare_lost(batch, node, why);
  if (node.loss_deferred) return;
  const std::string silent = std::to_string(batch.state().nodes_in(NodeStatus::kUnknown));
  batch.emit(NodeStatusChanged{node.id, NodeStatus::kUnknown,
                               "not given up, because " + silent + " nodes are silent at once (" + why + ")", true});
}

void welcome_back(Batch& batch, NodeId id) {
  const SchedulingConfig& rules = batch.state().config().scheduling;
  const NodeState& node = batch.state().node(id);
  if (node.gone_at.ms > 0 && node.gone_at <= batch.now()) {
    batch.emit(NodeCordoned{id, false, false, "berth", "it went away and is back", {}});
    return;
  }
  if (node.cordoned || rules.flap_losses == 0) return;
  const Timestamp since{checked_subtract(batch.now().ms, checked_multiply(rules.flap_window_s, 1000))};
  const auto losses = std::count_if(node.contact_losses.begin(), node.contact_losses.end(),
                                    [&](Timestamp loss) { return loss > since; });
  if (losses < rules.flap_losses) return;
  batch.emit(NodeCordoned{
      id,
      true,
      false,
      "berth",
      "it lost contact " + std::to_string(losses) + " times within " + document::duration_text(rules.flap_window_s),
      {}});
}

void give_up_deferred(Batch& batch) {
  if (batch.state().deferred_losses().empty() || is_mass_loss(batch.state())) return;
  const std::vector<NodeId> nodes(batch.state().deferred_losses().begin(), batch.state().deferred_losses().end());
  for (const NodeId id : nodes) declare_lost(batch, batch.state().node(id), "silent, and few others are");
}

}  // namespace berth::control

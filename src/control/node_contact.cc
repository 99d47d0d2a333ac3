#include "control/node_contact.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/checked.h"
#include "base/planted.h"
#include "control/reconcile.h"
#include "model/document/quantity.h"

namespace berth::control {

namespace {

using state::NodeState;
using state::State;

constexpr std::int64_t kFewestSilent = 3;
constexpr std::int64_t kToReturnMs = 60'000;  // grace of nodes that are still silent when a mass loss has ended

bool is_mass_loss(const State& state) {
  if (planted(Bug::kMassLossIgnored)) return false;
  const std::int64_t percent = state.config().scheduling.max_unreachable_percent;
  const auto silent = static_cast<std::int64_t>(state.nodes_in(NodeStatus::kUnknown));
  const std::int64_t known = silent + static_cast<std::int64_t>(state.nodes_in(NodeStatus::kReady));
  return percent > 0 && silent >= kFewestSilent && silent * 100 >= percent * known;
}

const std::string* boot_of(const NodeSpec& spec) {
  const auto label =
      std::find_if(spec.labels.begin(), spec.labels.end(), [](const auto& one) { return one.first == kBootLabel; });
  return label == spec.labels.end() ? nullptr : &label->second;
}

}  // namespace

void scale_down_after_loss(Batch& batch, const state::JobState& job, std::uint32_t lost) {
  const state::AttemptState& attempt = *job.attempt;
  const NodeId node = attempt.tasks[lost].placement.node;
  const auto there = std::find_if(attempt.tasks.begin(), attempt.tasks.end(),
                                  [&](const state::TaskState& task) { return task.placement.node == node; });
  const auto first = static_cast<std::uint32_t>(there - attempt.tasks.begin());
  if (attempt.stop || attempt.failure_code != 0 || first < attempt.base_tasks()) return;
  const Timestamp deadline = batch.now() + batch.state().grace_ms(job);
  batch.emit(StopBegan{job.id, attempt.number, StopCause::kNodeLost, JobId::none(), deadline, first});
}

void declare_lost(Batch& batch, const NodeState& node, const std::string& why, bool removed) {
  const NodeId id = node.id;
  const auto tasks = node.tasks;
  batch.emit(NodeStatusChanged{id, NodeStatus::kLost, why, false, removed});
  for (const auto& [job, task] : tasks) {
    scale_down_after_loss(batch, *batch.state().job(job), task);
    const state::JobState& owner = *batch.state().job(job);
    batch.emit(TaskExited{job, owner.attempt->number, task, owner.attempt->tasks[task].incarnation,
                          ExitReason::kNodeLost, 1, "node " + batch.state().node(id).spec.name + " was lost"});
  }
}

void lose(Batch& batch, const NodeState& node, const std::string& why) {
  if (node.loss_deferred) return;  // a repeated report after a restart; review_deferred handles the node
  if (node.status != NodeStatus::kUnknown || !is_mass_loss(batch.state())) return declare_lost(batch, node, why);
  const std::string silent = std::to_string(batch.state().nodes_in(NodeStatus::kUnknown));
  batch.emit(NodeStatusChanged{
      node.id, NodeStatus::kUnknown,
      "not declared lost, because " + silent + " nodes are out of contact at once (" + why + ")", true});
}

void welcome_back(Batch& batch, NodeId id, bool booted) {
  const SchedulingConfig& rules = batch.state().config().scheduling;
  const NodeState& node = batch.state().node(id);
  if (node.gone_at.ms > 0 && booted) {
    batch.emit(NodeCordoned{id, false, false, "berth", "it was shut down and is back", {}});
    return;
  }
  if (node.cordoned || rules.flap_losses == 0) return;
  const Timestamp since{checked_subtract(batch.now().ms, checked_multiply(rules.flap_window_s, 1000))};
  const auto losses = std::count_if(node.contact_losses.begin(), node.contact_losses.end(),
                                    [&](Timestamp loss) { return loss > since; });
  if (losses < rules.flap_losses || planted(Bug::kFlapIgnored)) return;
  batch.emit(NodeCordoned{id,
                          true,
                          false,
                          "berth",
                          std::to_string(losses) + " losses of contact within " +
                              document::duration_text(rules.flap_window_s) + " (scheduling.flap_losses)",
                          {}});
}

bool has_booted(const NodeState& known, const NodeSpec& spec) {
  const std::string* before = boot_of(known.spec);
  const std::string* now = boot_of(spec);
  return before != nullptr && now != nullptr ? *before != *now : known.status == NodeStatus::kLost;
}

Timestamp review_deferred(Batch& batch, std::optional<Timestamp>& few_silent_since) {
  const State& state = batch.state();
  if (state.deferred_losses().empty() || is_mass_loss(state)) {
    few_silent_since.reset();
    return Timestamp::never();
  }
  if (!few_silent_since) few_silent_since = batch.now();
  if (const Timestamp due = *few_silent_since + kToReturnMs; due > batch.now()) return due;
  const std::vector<NodeId> nodes(state.deferred_losses().begin(), state.deferred_losses().end());
  for (const NodeId id : nodes) declare_lost(batch, state.node(id), "out of contact, and few other nodes are");
  return Timestamp::never();
}

void reconcile_removals(Batch& batch) {
  const std::set<NodeId> removals = batch.state().removals();
  for (const NodeId id : removals) {
    if (!batch.state().node(id).tenants.empty()) continue;
    const std::set<JobId> owners = batch.state().reservations();
    for (const JobId owner : owners) {
      const auto& places = batch.state().job(owner)->reservation->placements;
      const auto is_there = [id](const TaskPlacement& one) { return one.node == id; };
      if (std::any_of(places.begin(), places.end(), is_there))
        batch.emit(ReservationDropped{owner, "one of its nodes is no more part of the fleet"});
    }
    batch.emit(NodeRemoved{id});
  }
}

}  // namespace berth::control

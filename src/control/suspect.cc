#include "control/suspect.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/checked.h"
#include "model/document/quantity.h"
#include "model/exit_code.h"

namespace berth::control {

namespace {

using state::AttemptRecord;
using state::AttemptState;
using state::NodeState;
using state::State;

constexpr std::size_t kMostSuspectPercent = 2;

// The users whose jobs have blamed the node within the window, each with one of these jobs.
std::map<std::string, JobId> accusers_of(const State& state, const NodeState& node) {
  const std::int64_t window_ms = checked_multiply(state.config().scheduling.suspect_window_s, 1000);
  std::map<std::string, JobId> users;
  for (const state::Blame& blame : node.blames) {
    if (state.now() - blame.at < window_ms) users.emplace(blame.user, blame.job);
  }
  return users;
}

bool is_suspect(const State& state, const NodeState& node) {
  const std::int64_t enough = state.config().scheduling.suspect_users;
  return enough > 0 && static_cast<std::int64_t>(accusers_of(state, node).size()) >= enough;
}

bool may_cordon_one_more(const State& state) {
  const auto enough = static_cast<std::size_t>(state.config().scheduling.suspect_users);
  // Also those whose blames are old by now: they stay cordoned.
  const auto cordoned = std::count_if(state.nodes().begin(), state.nodes().end(), [&](const NodeState& node) {
    return node.cordoned && node.blames.size() >= enough;
  });
  const std::size_t nodes = state.nodes_in(NodeStatus::kReady) + state.nodes_in(NodeStatus::kUnknown);
  return static_cast<std::size_t>(cordoned) < std::max<std::size_t>(1, nodes * kMostSuspectPercent / 100);
}

void cordon_if_suspect(Batch& batch, NodeId id) {
  const State& state = batch.state();
  const NodeState& node = state.node(id);
  if (node.cordoned || !is_suspect(state, node) || !may_cordon_one_more(state)) return;
  std::string jobs;
  for (const auto& [user, job] : accusers_of(state, node))
    jobs += (jobs.empty() ? "" : ", ") + std::to_string(job.value());
  const std::string within = document::duration_text(state.config().scheduling.suspect_window_s);
  batch.emit(NodeCordoned{
      id,
      true,
      false,
      "berth",
      "suspect: jobs " + jobs + " failed here within " + within + " and did well elsewhere (scheduling.suspect_users)",
      {}});
}

}  // namespace

bool may_be_its_nodes_fault(const TaskExited& exit) {
  if (exit.reason == ExitReason::kSupervisorLost) return exit.code == kSupervisorDiedCode;
  return exit.code != 0 && (exit.reason == ExitReason::kExited || exit.reason == ExitReason::kSignalled ||
                            exit.reason == ExitReason::kStartFailed);
}

void blame_node_of_last_failure(Batch& batch, JobId id, bool does_well) {
  const state::JobState& job = *batch.state().job(id);
  if (batch.state().config().scheduling.suspect_users == 0 || !job.attempt || job.past.empty()) return;
  const AttemptRecord& last = job.past.back();
  const AttemptState& attempt = *job.attempt;
  if (!last.failed_on.valid() || batch.state().node(last.failed_on).removed) return;
  const bool was_refused = last.outcome == Outcome::kNodeLost && last.code == kNodeShortCode;
  // Where a node was lost, what failed first may have failed for want of that one.
  if (last.outcome == Outcome::kNodeLost && !was_refused && last.code != kSupervisorDiedCode) return;
  const auto shows = [&](const state::TaskState& task) {
    return task.placement.node != last.failed_on && (does_well || task.phase == TaskPhase::kRunning);
  };
  if (!(does_well || was_refused) || last.code == kNotStartedCode) return;
  if (!std::all_of(attempt.tasks.begin(), attempt.tasks.end(), shows)) return;
  const NodeId node = last.failed_on;
  batch.emit(NodeBlamed{node, id, last.number});
  cordon_if_suspect(batch, node);
}

}  // namespace berth::control

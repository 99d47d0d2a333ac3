#include "control/drain.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "control/maintenance.h"
#include "control/reconcile.h"
#include "control/validate.h"
#include "state/replicas.h"

namespace berth::control {

namespace {

using state::JobState;
using state::NodeState;
using state::State;

constexpr std::string_view kWhenIdle = "drains when it is idle";

Result<void> check(const CordonNode& command, bool draining) {
  const std::int64_t gone_in_s = command.gone_in_s;
  if (gone_in_s < 0 || gone_in_s > kMaxSeconds || (gone_in_s > 0 && !draining))
    return invalid("a node that drains goes away in 1 second to 366 days, or stays");
  if (command.deadline_s < 0 || command.deadline_s > kMaxSeconds)
    return invalid("deadline must be 1 second to 366 days");
  if (!draining && (command.lose_work || command.when_idle || command.deadline_s > 0))
    return invalid("lose_work, when_idle and deadline are of a drain");
  if (command.deadline_s > 0 && (gone_in_s > 0 || command.lose_work))
    return invalid("with gone_in and lose_work every job is asked to leave now; a deadline is for those that are not");
  if (command.when_idle && command.lose_work)
    return invalid("when_idle lets every job finish, and lose_work stops those that cannot save; choose one of them");
  if (command.when_idle && gone_in_s > 0)
    return invalid("when_idle lets every job finish, and the node goes away (gone_in_s) before; choose one of them");
  return {};
}

// Returns true if only tasks of the job on this node that it was scaled up by have to leave.
bool only_grown_tasks(const NodeState& node, const JobState& job) {
  const auto first = node.tasks.lower_bound({job.id, 0});
  return first->second >= job.attempt->base_tasks();
}

DrainedJob drained(const State& state, const NodeState& node, const JobState& job, const CordonNode& command,
                   Timestamp now) {
  DrainedJob one{.job = job.id, .user = job.spec.user};
  const bool keeps_work = !loses_work(state, job) || only_grown_tasks(node, job);
  const state::RunningRow& row = state.running_table().rows()[job.running_row];
  one.loses_work = !keeps_work;
  one.leaves =
      job.attempt->stopping() || command.gone_in_s > 0 || (!command.when_idle && (keeps_work || command.lose_work));
  one.unsaved_s = keeps_work ? 0 : std::max<std::int64_t>(0, now - row.saved) / 1000;
  one.gpu_milli = row.gpu_milli;
  one.ends = job.limit_ends(job.attempt->started);
  if (command.deadline_s > 0) one.ends = std::min(one.ends, now + checked_multiply(command.deadline_s, 1000));
  return one;
}

std::string window_of(const NodeState& node) { return "drain-" + node.spec.name; }

void end_window(Batch& batch, const NodeState& node, const std::string& user) {
  if (batch.state().maintenance().contains(window_of(node))) batch.emit(MaintenanceEnded{window_of(node), true, user});
}

Result<void> set_deadline(Batch& batch, const NodeState& node, const CordonNode& command) {
  end_window(batch, node, command.user);
  PlanMaintenance plan;
  plan.name = window_of(node);
  plan.nodes = {node.spec.name};
  plan.from = batch.now() + checked_multiply(command.deadline_s, 1000);
  plan.for_s = kMaxSeconds;
  plan.reason = "the deadline of a drain; it ends when the node is uncordoned";
  plan.user = command.user;
  if (auto planned = plan_maintenance(batch, plan); !planned) return planned.error();
  return {};
}

std::vector<JobId> jobs_on(const NodeState& node) {
  std::vector<JobId> jobs;
  for (const auto& [job, task] : node.tasks) {
    if (jobs.empty() || jobs.back() != job) jobs.push_back(job);
  }
  return jobs;
}

}  // namespace

bool loses_work(const State& state, const JobState& job) {
  if (job.spec.kind == JobKind::kInteractive) return true;
  return !job.spec.checkpoint.on_signal && state::service_of(state, job) == nullptr;
}

Result<Reply> cordon_node(Batch& batch, const CordonNode& command) {
  const NodeState* node = batch.state().node_named(command.node);
  if (node == nullptr) return not_found("no such node '" + command.node.substr(0, 200) + "'");
  const bool asked_to_drain = command.cordoned && command.drain;
  if (auto ok = check(command, asked_to_drain); !ok) return ok.error();
  const bool draining = asked_to_drain && !command.when_idle;
  Timestamp gone_at;
  if (command.gone_in_s > 0) gone_at = batch.now() + checked_multiply(command.gone_in_s, 1000);
  Reply reply{.job = {}};
  if (asked_to_drain) {
    for (const JobId id : jobs_on(*node))
      reply.drained.push_back(drained(batch.state(), *node, *batch.state().job(id), command, batch.now()));
  }
  if (command.deadline_s > 0) {
    if (auto ok = set_deadline(batch, *node, command); !ok) return ok.error();
  } else if (!command.cordoned) {
    end_window(batch, *node, command.user);
  }
  const bool is_so = node->cordoned == command.cordoned && node->draining == draining && node->gone_at == gone_at &&
                     (!command.when_idle || node->cordon_why == kWhenIdle);
  if (!is_so) {
    const std::string why = gone_at.ms > 0 ? "it shuts down at " + to_iso8601(gone_at)
                                           : std::string(command.when_idle ? kWhenIdle : std::string_view());
    batch.emit(NodeCordoned{node->id, command.cordoned, draining, command.user, why, gone_at});
  }
  reply.unchanged = is_so && command.deadline_s == 0;
  if (!command.lose_work) return reply;
  for (const DrainedJob& one : reply.drained) {
    if (one.loses_work && drain_with_loss(batch, one.job)) reply.unchanged = false;
  }
  return reply;
}

}  // namespace berth::control

#include "control/move.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "model/document/quantity.h"
#include "state/replicas.h"

namespace berth::control {

namespace {

using state::JobState;
using state::State;

std::string name_of_job(const JobState& job) { return "job " + std::to_string(job.id.value()); }

std::vector<NodeId> nodes_of(const JobState& job) {
  std::set<NodeId> nodes;
  for (const state::TaskState& task : job.attempt->tasks) nodes.insert(task.placement.node);
  return {nodes.begin(), nodes.end()};
}

std::string names_of(const State& state, const std::vector<NodeId>& nodes) {
  constexpr std::size_t kMostNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i)
    text += (text.empty() ? "" : ", ") + state.node(nodes[i]).spec.name;
  if (nodes.size() > kMostNamed) text += " and " + std::to_string(nodes.size() - kMostNamed) + " more";
  return text;
}

// The error for a service or an array: only its replicas or elements run and can be moved.
Error names_parts(const State& state, const JobState& parent) {
  const bool service = parent.spec.kind == JobKind::kService;
  std::string text = name_of_job(parent) + (service ? " is a service" : " is an array");
  std::string running;
  if (const auto parts = state.children().find(parent.id); parts != state.children().end()) {
    for (const JobId id : parts->second) {
      if (state.job(id)->attempt) running += (running.empty() ? "" : ", ") + std::to_string(id.value());
    }
  }
  if (running.size() > 80) running = running.substr(0, running.rfind(',', 80)) + ", ...";
  if (running.empty()) return conflict(text + ", and no part of it runs");
  return conflict(text + "; move " + (service ? "one of its replicas" : "its elements") +
                  ", jobs that run: " + running);
}

// Returns the unsaved work of the job in words: "12m of work on 8 GPUs".
std::string work_of(const State& state, const JobState& job, Timestamp now) {
  const state::RunningRow& row = state.running_table().rows()[job.running_row];
  const std::int64_t lost_s = std::max<std::int64_t>(0, now - row.saved) / 1000;
  std::string text = document::duration_text(lost_s) + " of work";
  if (row.gpu_milli > 0)
    text += " on " + document::milli_text(row.gpu_milli) + (row.gpu_milli == kMilli ? " GPU" : " GPUs");
  return text;
}

Result<void> check_runs(const State& state, const JobState& job) {
  const std::string who = name_of_job(job);
  if (job.is_parent()) return names_parts(state, job);
  if (!job.attempt) return conflict(who + " does not run; only a running job can be moved");
  if (job.cancel_requested) return conflict(who + " is being cancelled");
  if (job.attempt->shrinking())
    return conflict(who + " is being scaled down (" + std::string(name_of(job.attempt->stop->cause)) +
                    "); move it after that");
  if (job.attempt->stop)
    return conflict(who + " is being stopped already (" + std::string(name_of(job.attempt->stop->cause)) + ")");
  if (job.attempt->exited > 0) return conflict(who + " has tasks that have ended; they would run again elsewhere");
  const JobState* parent = state.job(job.parent);
  if (parent != nullptr && parent->cancel_requested) return conflict(who + " is being cancelled");
  if (job.held || (parent != nullptr && parent->held))
    return conflict(who + " belongs to an array that is held and would not start again");
  return {};
}

// Refuses the move if it loses unsaved work that the order does not allow to lose, or a replica that its service cannot
// spare.
Result<void> check_loses_nothing(const State& state, const JobState& job, bool lose_work, Timestamp now) {
  const std::string who = name_of_job(job);
  if (job.spec.kind == JobKind::kInteractive) return conflict(who + " is interactive; sessions are not moved");
  if (const JobState* service = state::service_of(state, job)) {
    if (state::may_leave_by_choice(state, job)) return {};
    return conflict(name_of_job(*service) + ", the service of " + who + ", can spare no replica now (max_unavailable " +
                    std::to_string(service->spec.max_unavailable) + ")");
  }
  if (job.spec.checkpoint.on_signal || lose_work) return {};
  return conflict(who + " would lose " + work_of(state, job, now) +
                  " because it has no checkpoint.on_signal; --lose-work (lose_work) moves it all the same");
}

// Returns true if the job already moves and none of its new places is on a node of `off`: a repeated order changes
// nothing.
bool moves_off(const JobState& job, const std::vector<NodeId>& off) {
  if (!job.attempt || !job.attempt->stopping() || job.cancel_requested) return false;
  const state::Stop& stop = *job.attempt->stop;
  return stop.cause == StopCause::kMove && !stop.to.empty() &&
         std::none_of(stop.to.begin(), stop.to.end(), [&](const TaskPlacement& place) {
           return std::find(off.begin(), off.end(), place.node) != off.end();
         });
}

Reply reply_of(const State& state, const JobState& job, bool unchanged) {
  Reply reply{.job = job.id, .unchanged = unchanged};
  for (const TaskPlacement& place : job.attempt->stop->to) {
    const std::string& name = state.node(place.node).spec.name;
    if (std::find(reply.to.begin(), reply.to.end(), name) == reply.to.end()) reply.to.push_back(name);
  }
  reply.deadline = job.attempt->stop->deadline;
  return reply;
}

}  // namespace

Result<Reply> move_job(Batch& batch, const JobState& job, std::vector<NodeId> off, const MoveJob& command,
                       const FindMoveTarget& move_target) {
  const State& state = batch.state();
  if (!move_target) return Error{ErrorCode::kUnsupported, "this scheduler moves no jobs"};
  if (moves_off(job, off)) return reply_of(state, job, true);
  if (auto ok = check_runs(state, job); !ok) return ok.error();
  const std::vector<NodeId> here = nodes_of(job);
  if (off.empty()) off = here;
  std::sort(off.begin(), off.end());
  off.erase(std::unique(off.begin(), off.end()), off.end());
  const bool any_here = std::any_of(off.begin(), off.end(),
                                    [&](NodeId node) { return std::binary_search(here.begin(), here.end(), node); });
  if (!any_here) {
    return conflict(name_of_job(job) + " has no task on " + names_of(state, off) + "; it runs on " +
                    names_of(state, here));
  }
  for (const NodeId node : here) {
    if (state.node(node).status == NodeStatus::kReady) continue;
    return conflict(name_of_job(job) + " cannot be moved: its node " + state.node(node).spec.name +
                    " is out of contact (" + std::string(name_of(state.node(node).status)) + ")");
  }
  if (auto ok = check_loses_nothing(state, job, command.lose_work, batch.now()); !ok) return ok.error();
  auto to = move_target(batch.working_state(), job.id, off, batch.now());
  if (!to) return to.error();
  const std::uint32_t attempt = job.attempt->number;
  batch.emit(MoveOrdered{job.id, attempt, std::move(off), command.lose_work, command.user});
  batch.emit(StopBegan{job.id, attempt, StopCause::kMove, JobId::none(), batch.now() + state.grace_ms(job)});
  batch.emit(MoveNominated{job.id, attempt, std::move(*to)});
  return reply_of(state, job, false);
}

}  // namespace berth::control

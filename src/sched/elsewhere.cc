#include "sched/elsewhere.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sched/explain_short.h"
#include "sched/fit.h"
#include "sched/grow.h"
#include "sched/place.h"
#include "state/trial.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeState;
using state::State;
using state::Trial;

bool is_among(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// A window that is planned there may be clear of who runs and not of who starts anew a while later.
void close_other_nodes(Trial& trial, const State& state, const JobState& job, const std::vector<NodeId>& off) {
  const std::uint32_t pool = state.node(job.attempt->tasks.front().placement.node).pool;
  for (const NodeState& node : state.nodes()) {
    const bool may_go = node.pool == pool && node.maintenance.empty() && !is_among(off, node.id);
    if (!may_go && !node.cordoned) trial.cordon(node.id);
  }
}

// What it has on other nodes it has until it has left.
void keep_own_places(Trial& trial, const JobState& job, const std::vector<NodeId>& off) {
  std::vector<TaskPlacement> own;
  for (const state::TaskState& task : job.attempt->tasks) {
    if (!is_among(off, task.placement.node)) own.push_back(task.placement);
  }
  if (!own.empty()) trial.set_aside(job.id, own);
}

// Without what it has now.
bool keeps_standing(const State& state, const JobState& job, const std::vector<TaskPlacement>& to) {
  const std::uint64_t within =
      state.burst_amounts_of(job.spec, to) ? 1 : state.within_mask(job.queue, state.amounts_of(job.spec, to));
  return (job.attempt->charges.front().within & ~within) == 0;
}

}  // namespace

Result<std::vector<TaskPlacement>> find_elsewhere(State& state, JobId id, const std::vector<NodeId>& off,
                                                  Timestamp now) {
  const JobState& job = *state.job(id);
  const std::string none = "job " + std::to_string(id.value()) + " finds no places elsewhere now: ";
  Trial trial(state);
  trial.look_at(now);
  trial.remove(id);
  keep_own_places(trial, job, off);
  close_other_nodes(trial, state, job, off);
  PlaceWork work;
  Reason why;
  auto found = fit_beside_holds(trial, state, job, now, work, why);
  if (!found) {
    return conflict(none + sentence_with_what_is_short(state, job, why) + " (" + std::string(name_of(why.code)) + ")");
  }
  std::vector<TaskPlacement> to = split_growth(job.spec, std::move(*found)).start;
  if (!keeps_standing(state, job, to)) return conflict(none + "it is within its guarantee and would borrow there");
  return to;
}

}  // namespace berth::sched

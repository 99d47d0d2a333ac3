#include "sched/resize/move_target.h"

#include <algorithm>
#include <utility>

#include "sched/place/place.h"
#include "sched/resize/elastic.h"
#include "sched/start.h"
#include "state/transaction.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeState;
using state::State;
using state::Transaction;

bool is_among(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// Cordons nodes of other pools, nodes that the job is to leave, and nodes with planned maintenance. A window may not
// affect a task that runs there now, but it may affect one that starts anew a little later.
void close_other_nodes(Transaction& transaction, const State& state, const JobState& job,
                       const std::vector<NodeId>& off) {
  const std::uint32_t pool = state.node(job.attempt->tasks.front().placement.node).pool;
  for (const NodeState& node : state.nodes()) {
    const bool may_go = node.pool == pool && node.maintenance.empty() && !is_among(off, node.id);
    if (!may_go && !node.cordoned) transaction.cordon(node.id);
  }
}

// Sets aside what the job has on nodes that it need not leave: it holds that until it has left.
void keep_own_places(Transaction& transaction, const JobState& job, const std::vector<NodeId>& off) {
  std::vector<TaskPlacement> own;
  for (const state::TaskState& task : job.attempt->tasks) {
    if (!is_among(off, task.placement.node)) own.push_back(task.placement);
  }
  if (!own.empty()) transaction.set_aside(job.id, own);
}

// Returns true if the job would be within at least the guarantees it is within now. Requires that the job is removed.
bool keeps_standing(const State& state, const JobState& job, const std::vector<TaskPlacement>& to) {
  const std::uint64_t within =
      state.burst_amounts_of(job.spec, to) ? 1 : state.within_mask(job.queue, state.amounts_of(job.spec, to));
  return (job.attempt->charges.front().within & ~within) == 0;
}

}  // namespace

MoveTarget::MoveTarget(State& state, JobId id, const std::vector<NodeId>& off, Timestamp now) : transaction_(state) {
  const JobState& job = *state.job(id);
  transaction_.look_at(now);
  transaction_.remove(id);
  keep_own_places(transaction_, job, off);
  close_other_nodes(transaction_, state, job, off);
  SearchStats work;
  StartAnswer found = try_start(transaction_, {state, job, now, work});
  why_ = std::move(found.why);
  if (!found) return;
  std::vector<TaskPlacement> to = split_growth(job.spec, std::move(*found.placements)).start;
  would_borrow_ = !keeps_standing(state, job, to);
  if (!would_borrow_) places_ = std::move(to);
}

}  // namespace berth::sched

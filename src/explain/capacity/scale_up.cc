#include "explain/capacity/scale_up.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sched/queue/admit.h"
#include "sched/queue/order.h"
#include "sched/resize/elastic.h"
#include "sched/start.h"
#include "state/transaction.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::State;
using state::Transaction;

ScaleUpSearch::ScaleUpSearch(State& state, Timestamp now, const ScaleUpEffort& effort)
    : state_(state), now_(now), effort_(effort) {
  state_.pass_deadlines(now);
  at_first_ = pass(nullptr, 0);
}

// Tries the pending jobs as a cycle would, without preemption or backfill reservations for those that are refused.
ScaleUpSearch::Pass ScaleUpSearch::pass(const NodeSpec* like, std::int32_t nodes) {
  Pass pass;
  Transaction transaction(state_);
  for (std::int32_t n = 0; n < nodes; ++n) transaction.add_node(*like);
  Order order(state_, now_);
  const auto starts = [](const Asked& one) { return !one.places.empty(); };
  auto starts_left = kMostScaleUpStarts +
                     static_cast<std::size_t>(std::count_if(at_first_.asked.begin(), at_first_.asked.end(), starts));
  std::size_t asks = 0;
  while (const auto id = order.next()) {
    if (++asks > effort_.asks || starts_left == 0 || work_.nodes_scored >= effort_.nodes_scored) {
      complete_ = false;
      pass.spent = work_.nodes_scored >= effort_.nodes_scored;
      break;
    }
    const JobState& job = *state_.job(*id);
    if (gate(state_, job, now_)) continue;
    auto [places, why] = try_start(transaction, {state_, job, now_, work_});
    if (places) {
      std::vector<TaskPlacement> start = split_growth(job.spec, std::move(*places)).start;
      transaction.place(*id, start);
      pass.asked.push_back({*id, std::move(start)});
      if (nodes > 0) --starts_left;
    } else if (why.code == ReasonCode::kWouldDelayReservation) {
      order.refuse_as_long();
    } else {
      order.refuse();
      // A lending limit keeps back part of what exists: further nodes help, idle nodes do not.
      const bool kept_back = why.code == ReasonCode::kQuotaLentOut;
      if (is_placement_reason(why.code) || kept_back) pass.asked.push_back({*id, {}, kept_back || is_never(why.code)});
    }
  }
  return pass;
}

// The jobs that start now and did not at first.
std::vector<ScaleUpSearch::Asked> ScaleUpSearch::helped(const Pass& pass) const {
  std::set<JobId> before;
  for (const Asked& one : at_first_.asked) {
    if (!one.places.empty()) before.insert(one.job);
  }
  std::vector<Asked> helped;
  for (const Asked& one : pass.asked) {
    if (helped.size() == kMostScaleUpStarts) break;
    if (!one.places.empty() && !before.contains(one.job)) helped.push_back(one);
  }
  return helped;
}

// Returns true if a task of a job that lacks places could run on the node.
bool ScaleUpSearch::could_help(const NodeSpec& like) {
  Transaction transaction(state_);
  transaction.add_node(like);
  const state::NodeState& node = state_.nodes().back();
  return std::any_of(at_first_.asked.begin(), at_first_.asked.end(), [&](const Asked& one) {
    if (!one.places.empty()) return false;
    const JobState& job = *state_.job(one.job);
    for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
      if (could_hold(state_, job, g, node)) return true;
    }
    return false;
  });
}

// Bisection: `enough` nodes start all jobs, `few` do not.
std::optional<ScaleUpStarts> ScaleUpSearch::with(const NodeSpec& like) {
  if (at_first_.spent || !could_help(like)) return std::nullopt;
  const Pass most = pass(&like, kMostScaleUp);
  std::vector<Asked> all = helped(most);
  if (most.spent || all.empty()) return std::nullopt;
  std::set<JobId> wanted;
  for (const Asked& one : all) wanted.insert(one.job);
  std::int32_t few = 0;
  std::int32_t enough = kMostScaleUp;
  while (enough - few > 1) {
    const std::int32_t middle = (few + enough) / 2;
    const Pass tried = pass(&like, middle);
    if (tried.spent) return std::nullopt;
    std::vector<Asked> helps;
    for (const Asked& one : tried.asked) {
      if (!one.places.empty() && wanted.contains(one.job)) helps.push_back(one);
    }
    if (helps.size() == wanted.size()) {
      enough = middle;
      all = std::move(helps);
    } else {
      few = middle;
    }
  }
  ScaleUpStarts starts;
  starts.nodes = enough;
  for (const Asked& one : all) {
    starts.jobs.push_back(one.job);
    for (const TaskPlacement& place : one.places) {
      starts.gpu_milli += static_cast<std::int64_t>(place.gpus.size()) * place.gpu_milli;
      if (place.node.index() < state_.nodes().size()) starts.beside.emplace_back(place.node, one.job);
    }
  }
  return starts;
}

}  // namespace berth::explain

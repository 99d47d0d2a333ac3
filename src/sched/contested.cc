#include "sched/contested.h"

#include <set>

#include "sched/admit.h"
#include "sched/fit.h"
#include "sched/node_fit.h"
#include "sched/place.h"
#include "sched/quota.h"
#include "state/attained_service.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::QueueState;
using state::State;

bool may_use_one_of(const State& state, const JobState& job, const std::vector<TaskPlacement>& placements) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskAsk ask = task_ask(state, job, g, kAllModels);
    for (const TaskPlacement& placement : placements) {
      if (could_hold(state, ask, state.node(placement.node))) return true;
    }
  }
  return false;
}

// The first of a lane that may be asked now; equals of it may do nothing that it may not.
const JobState* first_of(const State& state, const std::set<state::PendingKey>& lane, Timestamp now) {
  for (const state::PendingKey& key : lane) {
    const JobState& waiting = *state.job(key.job);
    if (waiting.not_before <= now && !waiting.nomination) return &waiting;
  }
  return nullptr;
}

// Whether a job of its own queue could: of higher priority or, where the queue orders by attained service and the job
// can save, of a lower level.
bool could_preempt(const QueueState& queue, const JobState& claimant, const JobState& job, Timestamp now) {
  if (claimant.priority != job.priority) return claimant.priority > job.priority;
  return !queue.service_thresholds.empty() && job.spec.checkpoint.on_signal &&
         claimant.level < state::level_of(queue, job, now);
}

}  // namespace

bool contested(state::Trial& trial, State& state, const JobState& job, const std::vector<TaskPlacement>& placements,
               Timestamp now, PlaceWork& work) {
  const auto fits_some_time = [&](const JobState& waiting) {
    Reason why;
    return fit_beside_holds(trial, state, waiting, now, work, why).has_value() || !is_never(why.code);
  };
  const SchedulingConfig& rules = state.config().scheduling;
  const Amounts counts = state.amounts_of(job.spec, placements);
  for (const QueueState& leaf : state.queues()) {
    const bool own = leaf.id == job.queue;
    if (own ? !rules.preempt : !rules.reclaim) continue;
    for (const auto& [shape, lane] : leaf.lanes) {
      const JobState* waiting = first_of(state, lane, now);
      if (waiting == nullptr || waiting->id == job.id) continue;
      const Amounts asked = least_amounts(state, waiting->spec);
      const bool could =
          own ? could_preempt(leaf, *waiting, job, now) : could_reclaim(state, leaf.id, asked, job.queue, counts);
      if (could && admit(state, *waiting, asked).models != 0 && may_use_one_of(state, *waiting, placements) &&
          fits_some_time(*waiting))
        return true;
    }
  }
  return false;
}

}  // namespace berth::sched

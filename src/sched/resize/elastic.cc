#include "sched/resize/elastic.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "base/planted.h"
#include "sched/place/image_locality.h"
#include "sched/queue/admit.h"
#include "sched/queue/quota.h"

namespace berth::sched {

using state::JobState;
using state::State;

std::vector<std::int32_t> missing_tasks(const JobState& job) {
  std::vector<std::int32_t> counts;
  for (const TaskGroup& group : job.spec.groups) counts.push_back(group.count);
  if (planted(Bug::kGrowsTooFar)) return counts;
  for (const state::TaskState& task : job.attempt->tasks) --counts[task.placement.group];
  const bool any = std::any_of(counts.begin(), counts.end(), [](std::int32_t count) { return count > 0; });
  return any ? counts : std::vector<std::int32_t>();
}

bool may_grow(const State& state, const JobState& job) {
  if (job.phase != JobPhase::kRunning || job.cancel_requested || job.attempt->exited > 0) return false;
  return std::none_of(job.attempt->tasks.begin(), job.attempt->tasks.end(), [&](const state::TaskState& task) {
    const state::NodeState& node = state.node(task.placement.node);
    return node.draining || node.status != NodeStatus::kReady;
  });
}

Timestamp grows_next(const State& state, const JobState& job) {
  return job.attempt->resized + checked_multiply(state.config().scheduling.resize_interval_s, 1000);
}

namespace {

// The gangs that may scale up now, the most deserving first, and when the next of the others may.
struct Growing {
  std::vector<JobId> gangs;
  Timestamp next = Timestamp::never();
};

Growing growing(const GrowStep& step) {
  const State& state = step.state;
  Growing found;
  std::vector<std::tuple<bool, std::int64_t, Timestamp, JobId>> order;
  for (const JobId id : state.elastic()) {
    const JobState& job = *state.job(id);
    if (step.leaving.contains(id) || !may_grow(state, job) || missing_tasks(job).empty()) continue;
    if (const Timestamp when = grows_next(state, job); when > step.now) {
      found.next = std::min(found.next, when);
      continue;
    }
    const bool borrows = !state.guaranteed(job.queue, job.attempt->charges.back().within);
    order.emplace_back(borrows, -std::int64_t{job.priority}, job.submitted, id);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [borrows, priority, submitted, id] : order) found.gangs.push_back(id);
  return found;
}

}  // namespace

StartAndGrowth split_growth(const JobSpec& spec, std::vector<TaskPlacement> placements) {
  StartAndGrowth split;
  std::vector<std::int32_t> left;
  for (const TaskGroup& group : spec.groups) left.push_back(group.least());
  for (TaskPlacement& placement : placements) {
    const bool starts = left[placement.group]-- > 0;
    (starts ? split.start : split.growth).push_back(std::move(placement));
  }
  return split;
}

Growth find_growth(const State& state, const JobState& gang, SearchStats& work) {
  const std::vector<std::int32_t> lacks = missing_tasks(gang);
  ModelMask models = kAllModels;
  Growth growth;
  while (true) {
    growth.placements = place_more(state, gang, models, lacks, work);
    if (growth.placements.empty()) return growth;
    const TaskPlacement first = growth.placements.front();
    while (!growth.placements.empty()) {
      growth.refusal = refuses_growth(state, gang, growth.placements);
      if (!growth.refusal) return growth;
      growth.placements.pop_back();
    }
    // Other models may have room. A job without GPUs that gets whole nodes is restricted to no model, so nothing
    // changes for it.
    const bool of_model = growth.refusal->dim >= kDimGpuEquivalent && growth.refusal->dim < kDims;
    if (!of_model || (models & model_of(state, first)) == 0) return growth;
    models &= ~model_of(state, first);
  }
}

namespace {

// Returns places on the same GPU models, of the same quota standing, where more tasks find their image; else `places`.
std::vector<TaskPlacement> nearer_to_images(const State& state, const JobState& gang, std::vector<TaskPlacement> places,
                                            SearchStats& work) {
  if (!image_is_missing(state, gang.spec, places)) return places;
  std::vector<std::int32_t> counts(gang.spec.groups.size());
  ModelMask models = 0;
  for (const TaskPlacement& place : places) {
    ++counts[place.group];
    models |= model_of(state, place);
  }
  auto others = place_more(state, gang, models == 0 ? kAllModels : models, counts, work, true);
  const auto within = [&](std::span<const TaskPlacement> some) {
    return state.within_mask(gang.queue, state.amounts_of(gang.spec, some));
  };
  const auto in_burst_pools = [&](std::span<const TaskPlacement> some) {
    return state.burst_amounts_of(gang.spec, some).has_value();
  };
  const bool nearer = are_nearer_to_images(state, gang.spec, others, places) && !refuses_growth(state, gang, others) &&
                      in_burst_pools(others) == in_burst_pools(places) && (within(places) & ~within(others)) == 0;
  return nearer ? others : places;
}

}  // namespace

Timestamp grow_gangs(const GrowStep& step, Plan& plan) {
  const Growing found = growing(step);
  for (const JobId id : found.gangs) {
    const JobState& job = *step.state.job(id);
    std::vector<TaskPlacement> placements = find_growth(step.state, job, step.work).placements;
    if (placements.empty()) continue;
    placements = nearer_to_images(step.state, job, std::move(placements), step.work);
    step.transaction.grow(id, placements);
    plan.decisions.emplace_back(GrowDecision{id, std::move(placements)});
  }
  return found.next;
}

}  // namespace berth::sched

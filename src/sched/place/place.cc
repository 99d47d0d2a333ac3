#include "sched/place/place.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sched/place/gang.h"
#include "sched/place/gang_search.h"
#include "sched/place/refusal.h"
#include "sched/place/topology.h"
#include "sched/queue/quota.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeClassId;
using state::NodeState;
using state::State;

// Of which models and pools places are asked, and whether the reason is, where there are none.
struct Asked {
  ModelMask models = 0;
  Pools pools = Pools::kAny;
  bool why = false;
};

// Places by one score; else why not, where that is asked for.
PlaceAnswer place_by(NodeScore score, const State& state, const JobState& job, const Asked& asked, SearchStats& work) {
  Gang gang(state, job, {asked.models, score, asked.pools}, work);
  const auto refusal = place_all(gang, job);
  if (!refusal) return {std::move(gang).in_rank_order(), {}};
  if (!asked.why) return {};
  return {std::nullopt, reason_of(gang, job, asked.models, *refusal)};
}

// Whether tasks of several sizes fit beside each other depends on where the first ones go. It must not depend on the
// mix of requests, which the fragmentation score uses and which changes while a refused gang is parked
// (sched/requeue/requeue.h). So best fit decides whether such a gang fits.
PlaceAnswer place_gang(const State& state, const JobState& job, const Asked& asked, SearchStats& work) {
  const NodeScore score = job.spec.exclusive ? NodeScore::kBestFit : state.config().scheduling.score;
  if (score == NodeScore::kBestFit || job.spec.groups.size() == 1) return place_by(score, state, job, asked, work);
  PlaceAnswer fitting = place_by(NodeScore::kBestFit, state, job, asked, work);
  if (!fitting) return fitting;
  PlaceAnswer scored = place_by(score, state, job, {asked.models, asked.pools, false}, work);
  return scored ? std::move(scored) : std::move(fitting);
}

std::optional<std::vector<TaskPlacement>> place_near(const State& state, const JobState& job, ModelMask models,
                                                     Pools pools, SearchStats& work) {
  const NodeScore score = job.spec.exclusive ? NodeScore::kBestFit : state.config().scheduling.score;
  Gang gang(state, job, {models, score, pools}, work);
  gang.prefer_images();
  if (place_all(gang, job)) return std::nullopt;
  return std::move(gang).in_rank_order();
}

std::optional<std::vector<TaskPlacement>> place_at_most(const State& state, const JobState& job, ModelMask models,
                                                        Pools pools, const Amounts& most, SearchStats& work) {
  Gang gang(state, job, {models, NodeScore::kBestFit, pools}, work);
  gang.set_most(most);
  if (place_all(gang, job)) return std::nullopt;
  return std::move(gang).in_rank_order();
}

// A gang within its guarantees is within only where they are backed, so it goes to ordinary pools if it can. A gang
// that borrows goes to burst pools first, so that the room that backs guarantees stays free.
Pools first_choice(const State& state, const JobState& job) {
  return within_guarantee(state, job) ? Pools::kOrdinary : Pools::kBurst;
}

}  // namespace

bool could_hold(const State& state, const JobState& job, std::size_t group, const NodeState& node) {
  return could_hold(state, task_requirements(state, job, group, kAllModels), node);
}

bool could_hold(const State& state, const TaskRequirements& ask, const NodeState& node) {
  return ask.classes[state.node_index().class_of(node.id).index()] && has_labels(ask.group, node.spec) &&
         slots_when_empty(ask, state.node_index().shape_of(node.id)) > 0;
}

std::int64_t slots_when_whole(const State& state, const TaskRequirements& ask, const NodeState& node) {
  const state::NodeShape& shape = state.node_index().shape_of(node.id);
  const bool allowed = ask.classes[shape.node_class.index()] && has_labels(ask.group, node.spec);
  return allowed ? slots_when_empty(ask, healed(shape)) : 0;
}

std::int64_t gpu_milli_of(std::span<const TaskPlacement> placements) {
  std::int64_t milli = 0;
  for (const TaskPlacement& one : placements) milli += static_cast<std::int64_t>(one.gpus.size()) * one.gpu_milli;
  return milli;
}

std::int64_t available_gpu_milli(const State& state, std::span<const TaskRequirements> asks) {
  const auto any = [&](auto&& may) { return std::any_of(asks.begin(), asks.end(), may); };
  const auto has_model = [](const TaskRequirements& ask, std::size_t m) { return (ask.models >> m & 1U) != 0; };
  std::int64_t milli = 0;
  if (!any(judged_by_node)) {
    for (std::size_t c = 0; c < asks.front().classes.size(); ++c) {
      for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
        if (!any([&](const TaskRequirements& ask) { return ask.classes[c] && has_model(ask, m); })) continue;
        milli += state.node_index().available_milli(NodeClassId(static_cast<std::uint16_t>(c)),
                                                    GpuModelId(static_cast<std::uint16_t>(m)));
      }
    }
    return milli;
  }
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks()) continue;
    ModelMask models = 0;
    for (const TaskRequirements& ask : asks) {
      if (ask.classes[state.node_index().class_of(node.id).index()] && suits(ask, node)) models |= ask.models;
    }
    for (const state::GpuSlot& gpu : node.gpus) {
      if ((models >> gpu.model.index() & 1U) != 0) milli += gpu.available_milli();
    }
  }
  return milli;
}

std::int64_t least_gpu_milli(const TaskRequirements& ask) {
  return ask.group.least() * ask.group.request.total_gpu_milli();
}

std::int64_t gpu_milli_short(const State& state, const JobState& job, ModelMask models, Pools pools) {
  std::int64_t lacking = 0;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskRequirements ask = task_requirements(state, job, g, models, pools);
    const std::int64_t asked = least_gpu_milli(ask);
    if (asked == 0 || judged_by_node(ask)) continue;
    lacking = std::max(lacking, asked - available_gpu_milli(state, {&ask, 1}));
  }
  return lacking;
}

namespace {

PlaceAnswer place_by_choice(const State& state, const JobState& job, ModelMask models, bool why, SearchStats& work) {
  if (state.has_burst_pools()) {
    if (auto first = place_gang(state, job, {models, first_choice(state, job), false}, work)) return first;
  }
  return place_gang(state, job, {models, Pools::kAny, why}, work);
}

}  // namespace

PlaceAnswer place(const State& state, const JobState& job, ModelMask models, SearchStats& work) {
  return place_by_choice(state, job, models, true, work);
}

std::optional<std::vector<TaskPlacement>> try_place(const State& state, const JobState& job, ModelMask models,
                                                    SearchStats& work) {
  return place_by_choice(state, job, models, false, work).placements;
}

namespace {

// Returns the domain of the group's required level around one of its tasks; without one, around any task of the job.
// Nothing if the node has moved to another domain.
std::optional<Region> region_to_grow(const State& state, const JobState& job, const JobLevels& levels, std::size_t g) {
  const bool own = levels.narrower(g);
  for (const state::TaskState& task : job.attempt->tasks) {
    if (own && task.placement.group != g) continue;
    return region_around(state, task.placement.node, own ? levels.groups[g].required : levels.job.required);
  }
  return std::nullopt;
}

}  // namespace

ModelMask model_of(const State& state, const TaskPlacement& placement) {
  if (placement.gpus.empty()) return 0;
  return ModelMask{1} << state.node(placement.node).gpus[placement.gpus.front()].model.index();
}

ModelMask model_of_first(const State& state, std::span<const TaskPlacement> placements) {
  for (const TaskPlacement& one : placements) {
    if (const ModelMask model = model_of(state, one)) return model;
  }
  return 0;
}

std::vector<TaskPlacement> place_more(const State& state, const JobState& job, ModelMask models,
                                      const std::vector<std::int32_t>& counts, SearchStats& work, bool by_images) {
  const auto more_in = [&](Pools pools) {
    Gang gang(state, job, {models, NodeScore::kBestFit, pools}, work);
    if (by_images) gang.prefer_images();
    const JobLevels levels = job_levels(gang);
    if (!levels.known()) return std::vector<TaskPlacement>();
    for (std::size_t g = 0; g < counts.size(); ++g) {
      if (const auto region = region_to_grow(state, job, levels, g)) gang.add(g, counts[g], *region);
    }
    return std::move(gang).in_rank_order();
  };
  if (state.has_burst_pools()) {
    if (borrowing_is_stopped(state, job.queue)) return more_in(Pools::kOrdinary);
    if (auto first = more_in(first_choice(state, job)); !first.empty()) return first;
  }
  return more_in(Pools::kAny);
}

std::optional<std::vector<TaskPlacement>> try_place(const State& state, const JobState& job, ModelMask models,
                                                    Pools pools, SearchStats& work) {
  return place_gang(state, job, {models, pools, false}, work).placements;
}

std::optional<std::vector<TaskPlacement>> place_by_images(const State& state, const JobState& job, ModelMask models,
                                                          SearchStats& work) {
  if (state.has_burst_pools()) {
    if (auto first = place_near(state, job, models, first_choice(state, job), work)) return first;
  }
  return place_near(state, job, models, Pools::kAny, work);
}

std::optional<std::vector<TaskPlacement>> try_place_at_most(const State& state, const JobState& job, ModelMask models,
                                                            const Amounts& most, SearchStats& work) {
  if (state.has_burst_pools()) {
    if (auto first = place_at_most(state, job, models, first_choice(state, job), most, work)) return first;
  }
  return place_at_most(state, job, models, Pools::kAny, most, work);
}

}  // namespace berth::sched

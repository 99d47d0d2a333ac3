#pragma once
// Placement of a whole gang on what is available now: filter nodes, then best fit, then devices. All or nothing: either
// every task group gets at least min_count tasks, or nothing is placed.
//
// If there are burst pools, a gang within its guarantees is tried in the other pools first, and a gang that borrows is
// tried in burst pools first. If it does not fit there, all pools are used.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/timestamp.h"
#include "model/job.h"
#include "model/reason.h"
#include "sched/place/node_fit.h"
#include "state/state.h"

namespace berth::sched {

// How much work searches have done: counters alone, which no decision reads.
struct SearchStats {
  std::uint64_t nodes_scored = 0;
  std::uint64_t victims_looked_up = 0;  // running jobs that a search for victims looked up, each from its job
  std::uint64_t ends_worked_out = 0;    // ends of running jobs
};

// Places for a gang, or why there are none.
struct PlaceAnswer {
  std::optional<std::vector<TaskPlacement>> placements;
  Reason why;  // none where there are placements
  explicit operator bool() const { return placements.has_value(); }
};

// Returns places for the job's groups, for their full counts if possible and at least for their least counts; else
// which group does not fit and why. `models` further restricts what the groups themselves allow.
PlaceAnswer place(const state::State& state, const state::JobState& job, ModelMask models, SearchStats& work);

// The same without the reason, which may cost more than the search.
std::optional<std::vector<TaskPlacement>> try_place(const state::State& state, const state::JobState& job,
                                                    ModelMask models, SearchStats& work);

// The same in these pools.
std::optional<std::vector<TaskPlacement>> try_place(const state::State& state, const state::JobState& job,
                                                    ModelMask models, Pools pools, SearchStats& work);

// The same, but of nodes that fit equally well those with the image go first. If it finds nothing, the job may still
// fit.
std::optional<std::vector<TaskPlacement>> place_by_images(const state::State& state, const state::JobState& job,
                                                          ModelMask models, SearchStats& work);

// The same for an exclusive job, on nodes that count no more than `most` each.
std::optional<std::vector<TaskPlacement>> try_place_at_most(const state::State& state, const state::JobState& job,
                                                            ModelMask models, const Amounts& most, SearchStats& work);

// Returns the GPU model of the task as a mask; 0 if it has no GPUs.
ModelMask model_of(const state::State& state, const TaskPlacement& placement);

// The GPU model of the first task that has GPUs, or none.
ModelMask model_of_first(const state::State& state, std::span<const TaskPlacement> placements);

// Returns places for up to `counts` more tasks of each group of a running gang, inside the domains of its required
// levels in which it runs. `models` and `by_images` are as above.
std::vector<TaskPlacement> place_more(const state::State& state, const state::JobState& job, ModelMask models,
                                      const std::vector<std::int32_t>& counts, SearchStats& work,
                                      bool by_images = false);

// Returns the sum of all GPUs, in milli-GPUs.
std::int64_t gpu_milli_of(std::span<const TaskPlacement> placements);

// The GPUs, in milli-GPU, that are available on nodes and models that one of the groups may use.
std::int64_t available_gpu_milli(const state::State& state, std::span<const TaskRequirements> asks);

// The GPUs, in milli-GPU, of the least count of the group.
std::int64_t least_gpu_milli(const TaskRequirements& ask);

// Returns how many milli-GPUs the job lacks at min_count, on the nodes and models that it may use. It cannot fit before
// that much is freed. Groups that select by label count as lacking nothing, because each node would have to be looked
// at.
std::int64_t gpu_milli_short(const state::State& state, const state::JobState& job, ModelMask models,
                             Pools pools = Pools::kAny);

// Drops tasks above min_count, the last ones first, until `fits` is true for the rest. Returns false if it is not even
// true at min_count; the placements are then of no use.
template <class Fits>
bool trim_until(const JobSpec& spec, std::vector<TaskPlacement>& placements, Fits&& fits) {
  while (!fits(placements)) {
    std::vector<std::int32_t> counts(spec.groups.size());
    for (const TaskPlacement& placement : placements) ++counts[placement.group];
    std::size_t last = placements.size();
    while (last > 0 && counts[placements[last - 1].group] == spec.groups[placements[last - 1].group].least()) --last;
    if (last == 0) return false;
    placements.erase(placements.begin() + static_cast<std::ptrdiff_t>(last - 1));
  }
  return true;
}

// Returns true if the node, were it empty, could hold one task of the group.
bool could_hold(const state::State& state, const state::JobState& job, std::size_t group, const state::NodeState& node);
// The same for many nodes; `ask` must allow all models.
bool could_hold(const state::State& state, const TaskRequirements& ask, const state::NodeState& node);
// Returns how many tasks of the group the node could hold if it were empty and its failed GPUs healthy.
std::int64_t slots_when_whole(const state::State& state, const TaskRequirements& ask, const state::NodeState& node);

}  // namespace berth::sched

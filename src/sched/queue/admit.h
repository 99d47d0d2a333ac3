#pragma once
// Admission: the quota side of a start. It says which GPU models the job may use without passing a limit, or the reason
// why there are none.

#include <optional>
#include <span>

#include "model/reason.h"
#include "sched/place/place.h"
#include "state/state.h"

namespace berth::sched {

struct Admission {
  ModelMask models = 0;
  Reason reason;  // set if `models` is 0
};

// Checks max, user limits, budgets and lending limits on the quota path for the job's least size, for each GPU model.
Admission admit(const state::State& state, const state::JobState& job);
// The same if the caller has the job's least_amounts already.
Admission admit(const state::State& state, const state::JobState& job, const Amounts& least);

// Returns the GPU models for which the job passes every quota check, lending limits included, without using a burst
// pool.
ModelMask models_beside_burst(const state::State& state, const state::JobState& job);

// Returns true if the job's least size passes quota on every GPU model.
bool admits_all_models(const state::State& state, const state::JobState& job);

// Returns true if the job's queue and class may use at least one burst pool.
bool may_burst(const state::State& state, const state::JobState& job);

// Returns why quota refuses the job at exactly these placements; nothing if it does not.
std::optional<Reason> refuses(const state::State& state, const state::JobState& job,
                              std::span<const TaskPlacement> placements);

// Returns why quota refuses more tasks of a running job at these placements; nothing if it does not. The limit on
// running jobs per user does not count: the job runs already.
std::optional<Reason> refuses_growth(const state::State& state, const state::JobState& job,
                                     std::span<const TaskPlacement> placements);

// Returns why the job may not be evaluated now: it is held, waits for a dependency, is the parent of an array or a
// service, or its earliest start has not come. Nothing if it may.
std::optional<Reason> gate(const state::State& state, const state::JobState& job, Timestamp now);

}  // namespace berth::sched

#pragma once
// Admission: the quota side of a start. Which GPU models the job may use without passing a ceiling, or the Reason why
// not.

#include <optional>
#include <span>

#include "model/reason.h"
#include "sched/place/place.h"
#include "state/state.h"

namespace berth::sched {

struct Admission {
  ModelMask models = 0;
  Reason reason;  // when models is 0
};

// Ceilings and lending limits on the way to the root, for the job's least size, per GPU model.
Admission admit(const state::State& state, const state::JobState& job);
// The same where it is known what the job counts at least.
Admission admit(const state::State& state, const state::JobState& job, const Amounts& least);

// The models on which quota refuses nothing of it where none of it is in burst pools: of those a lending limit keeps
// back nothing there.
ModelMask models_beside_burst(const state::State& state, const state::JobState& job);

// Whether quota refuses the job's least size on no GPU model.
bool admits_all_models(const state::State& state, const state::JobState& job);

// Whether the job's queue and class may use some burst pool.
bool may_burst(const state::State& state, const state::JobState& job);

// The same for a placement that is known exactly.
std::optional<Reason> refuses(const state::State& state, const state::JobState& job,
                              std::span<const TaskPlacement> placements);

// The same for more tasks of a running job; how many jobs its user may run is no matter then.
std::optional<Reason> refuses_growth(const state::State& state, const state::JobState& job,
                                     std::span<const TaskPlacement> placements);

// Why the job may not even be asked now: held, too early, waiting for another job.
std::optional<Reason> gate(const state::State& state, const state::JobState& job, Timestamp now);

}  // namespace berth::sched

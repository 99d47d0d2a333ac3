#pragma once
// Blocking: what keeps a waiting job from starting at a moment, asked with the functions of the cycle in the cycle's
// order: gate, head of a strict queue, quota, place. Nobody is evicted for the answer.

#include <optional>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/place.h"
#include "state/state.h"

namespace berth::sched {

// The first constraint that refuses, or nothing: asked now, the job would start. `job` may be a changed copy of what
// the state holds.
std::optional<Reason> blocking(const state::State& state, const state::JobState& job, Timestamp now, PlaceWork& work);

// The job that a strict queue asks before this one, or none().
JobId strict_head_before(const state::State& state, const state::JobState& job, Timestamp now);

}  // namespace berth::sched

#pragma once
// Waking: which lanes a cycle has to ask at all. A queue is represented, in the order of asking, by the first of its
// jobs that could start now or could claim victims; what can do neither sleeps until something that blocks it changes
// (state/wait_lists.h). Because "could start now" is a question to the state as the cycle finds it, the answer is the
// same whether a lane was asleep or has just been probed again, and so are the decisions.

#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/openings.h"
#include "sched/place.h"
#include "sched/questions.h"
#include "state/state.h"

namespace berth::sched {

// Probes every lane that is awake, or sleeps and may be helped by what has changed since, and puts to sleep what can
// neither start nor claim, those whose refusal cannot be told exactly until anything changes. Returns the first job of
// each lane that was put to sleep, and why; those that stay awake are added to the openings.
std::vector<std::pair<JobId, Reason>> probe_lanes(state::State& state, Timestamp now, PlaceWork& work,
                                                  Questions& questions, Openings& openings);

// Whether a lane that was stirred lacked nothing but places, and none of the nodes that became freer since then may
// hold one of its tasks now: then it would be refused again.
bool nodes_are_taken(const state::State& state, const state::LaneKey& lane, const state::WaitLists::Sleeper& sleeper);

// Whether the first of the lane may stop others now: those who took what has become free may stand behind it.
bool may_claim_by_now(const state::State& state, const state::LaneKey& lane);

// The first job of the lane that may be asked now, or none().
JobId first_eligible(const state::State& state, const state::LaneKey& lane, Timestamp now);

}  // namespace berth::sched

#pragma once
// The scheduling cycle: the page to read first. State in, plan out; the state is used as scratch paper (state/trial.h)
// and is as it was when the function returns.

#include "base/timestamp.h"
#include "model/plan.h"
#include "state/state.h"

namespace berth::sched {

Plan run_cycle(state::State& state, Timestamp now);

}  // namespace berth::sched

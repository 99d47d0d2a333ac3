#pragma once
// The scheduling cycle of the simulated world: sched::run_cycle, and growth. The scheduler starts an elastic gang with
// what fits and does not add to it later; the rest of the system is made for it all the same (P2: each step of growth
// is one event). So that this way is walked, and judged, here a gang below its count gets one more task whenever the
// scheduler itself has nothing to decide and a node and the quota have room. Like the cycle it is a function of state
// and time.

#include "base/timestamp.h"
#include "model/plan.h"
#include "state/state.h"

namespace berth::sim {

Plan growing_cycle(state::State& state, Timestamp now);

}  // namespace berth::sim

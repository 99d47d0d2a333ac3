#pragma once
// Until when an attempt that was asked to stop may go on: to the deadline that it was given, and no longer than a node
// that it still has tasks on and that goes away by notice, also when the notice came, or was shortened, after the stop.

#include "state/state.h"

namespace berth::state {

Timestamp grace_ends(const State& state, const AttemptState& attempt);  // it has a stop

}  // namespace berth::state

#pragma once
// Effects are instructions to backends: start, signal, kill or forget a task. They are computed from the state and
// never stored, so that after a restart they can be computed again.

#include <span>
#include <vector>

#include "model/effect.h"
#include "model/event.h"
#include "state/state.h"

namespace berth::control {

// Returns the effects of the durable events `records`. Requires: `state` is the state after these events.
std::vector<Effect> effects_of(const state::State& state, std::span<const EventRecord> records);

// Returns all effects that are in force now: a start for each live task, and a signal or kill for each task that is
// being stopped. It is for a restart, after which a backend may have missed some.
std::vector<Effect> all_effects(const state::State& state);

}  // namespace berth::control

#pragma once
// effects: what the world must be told after these events became durable, and, after a restart, all that it may have
// missed.

#include <span>
#include <vector>

#include "model/effect.h"
#include "model/event.h"
#include "state/state.h"

namespace berth::control {

// The effects of a durable batch. `state` is the state after it.
std::vector<Effect> effects_of(const state::State& state, std::span<const EventRecord> records);

// Everything the state asks of the world right now: for every live task its start, and for every stop its signal or
// kill.
std::vector<Effect> all_effects(const state::State& state);

}  // namespace berth::control

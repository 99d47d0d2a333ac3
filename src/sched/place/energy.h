#pragma once
// Energy: which GPU models a gang should go to if it accepts several, so that the same work takes the least power.
//
// A model's figure is its watts under load over its weight in GPU-equivalents. If scheduling.energy is on, a gang that
// fits is placed again: on the model of the least figure if that model alone can hold it, else on the two models of the
// least figures, and so on. Whether the gang fits, and why not, does not depend on it. Models of equal figures count as
// one step, and models without known watts come last.

#include <vector>

#include "sched/place/node_fit.h"
#include "state/state.h"

namespace berth::sched {

// Returns growing sets of `models`: the most efficient, the most efficient and the next, and so on, but not all of
// them. Empty if energy is off.
std::vector<ModelMask> thrifty_models(const state::State& state, const state::JobState& job, ModelMask models);

}  // namespace berth::sched

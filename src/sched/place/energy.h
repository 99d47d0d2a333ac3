#pragma once
// Energy: which GPU models a gang that accepts several should go to, so that the least watts go into the same work.
//
// A model's figure is its watts under load over its weight in GPU-equivalents. Where scheduling.energy is on, a gang
// that fits is placed on the model of the least figure that holds it alone, else on the two of the least, and so on;
// whether it fits, and why not, is the same as without. Models of equal figures stand together, and those whose watts
// are not known come last.

#include <vector>

#include "sched/place/node_fit.h"
#include "state/state.h"

namespace berth::sched {

// Of these models: the thriftiest, the thriftiest and the next, ..., but not all of them. Empty where energy is off.
std::vector<ModelMask> thrifty_models(const state::State& state, const state::JobState& job, ModelMask models);

}  // namespace berth::sched

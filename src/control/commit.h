#pragma once
// commit turns the decisions of a cycle into events, in the order of the plan. Requires: the batch holds the state for
// which the cycle made the plan. No decision can be refused here, because the cycle has tried each of them on that
// state.

#include "control/batch.h"
#include "model/plan.h"

namespace berth::control {

void commit(Batch& batch, const Plan& plan);

// Returns a hash of all decisions, which the event CycleRan records. A replay of the log computes it again to prove
// that the cycle decides the same.
std::uint64_t plan_hash(const Plan& plan);

}  // namespace berth::control

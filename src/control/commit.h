#pragma once
// commit: the decisions of a cycle become events, in their order. Every decision was tried on the very state it is
// committed to, so nothing can be refused here; a plan that does not fit is a CHECK.

#include "control/batch.h"
#include "model/plan.h"

namespace berth::control {

void commit(Batch& batch, const Plan& plan);

// A hash over the decisions, for replay.
std::uint64_t plan_hash(const Plan& plan);

}  // namespace berth::control

#pragma once
// The stacks of the queues: which running charges lie within a guarantee is settled again whenever room appeared, or
// was taken away by a configuration.
//
// 1. What no longer fits into a guarantee becomes borrowed, the last to start first. Nothing stops for it.
// 2. What fits beside what is promised is promoted, in the order of the stack: a smaller later one may pass a larger
//    earlier one.
// 3. The start of a gang that is within at the child of q takes the room at q from charges that are there only because
//    siblings left it idle: those that borrow at their own child of q, the last first. Only where it then stands higher
//    than each of them did (sched/preempt/preempt.h has the order), so that the potential there rises.

#include "control/batch.h"

namespace berth::control {

void reconcile_stack(Batch& batch, QueueId queue);

}  // namespace berth::control

#pragma once
// Guarantee accounting decides which charges count within the guarantee of a queue and which are borrowed. A charge is
// what one start or scale-up of a running job counts against quota. reconcile() calls this for each queue whose
// guarantee gained room or was configured anew.
//
// 1. A charge that no longer fits into the guarantee becomes borrowed. Charges are counted in start order, so the
//    oldest are kept within. No job is evicted for this.
// 2. A borrowed charge that fits beside the charges within and the nominated amounts becomes within. Charges are tried
//    in start order; a small later charge may pass a large earlier one.
// 3. A start that is within at its child of queue q, but borrows at q, may displace charges at q. Only charges that are
//    within at q and borrow at their own child of q are displaced, the last started first: they use room that siblings
//    left idle. The start must then have a higher rank than each displaced charge had (sched/preempt/preempt.h defines
//    the rank), so that the potential at q rises.

#include "control/batch.h"

namespace berth::control {

void reconcile_stack(Batch& batch, QueueId queue);

}  // namespace berth::control

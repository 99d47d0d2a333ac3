#pragma once
// Guarantee accounting decides which charges count within the guarantee of a queue and which are borrowed there. A
// charge is what one start or scale-up of a running job counts against quota. A charge can be within the guarantee of
// one queue on its quota path and borrowed at another. reconcile() calls this for each queue whose guarantee gained
// room or was configured anew.
//
// 1. A charge that no longer fits into the guarantee becomes borrowed. Charges are counted in start order, so older
//    ones are kept within first. No job is evicted for this.
// 2. A borrowed charge that fits beside the charges within and the nominated amounts becomes within. Charges are tried
//    in start order; a small later charge may pass a large earlier one.
// 3. A job that is within the guarantee of a child of queue q may displace charges at q, if its start is borrowed at q.
//    Displaced are only charges that are borrowed at their own child of q: they use room that siblings left idle. The
//    last started goes first. The job must then have a higher rank than each displaced charge had
//    (sched/preempt/preempt.h defines the rank), so that the potential rises.

#include "control/batch.h"

namespace berth::control {

void reconcile_guarantee(Batch& batch, QueueId queue);

}  // namespace berth::control

#pragma once
// Why a guarantee is breached, that is, why a pending job waits that would be within it. The answer comes from the
// scheduler's own search in a transaction, at an instant when nothing more can start.
//
//   unserved   without all jobs that borrow beside the queue, the job would fit, and the jobs that are leaving do not
//              free enough. The scheduler should have evicted for it
//   leaving    the job is nominated or will fit; the jobs on its places are saving their work
//   no place   even without all borrowing jobs it would not fit; jobs within their guarantees are in the way

#include "model/ids.h"
#include "state/state.h"

namespace berth::sim {

enum class Breach { kUnserved, kLeaving, kNoPlace };

// Returns why the guarantee of the queue is breached. Requires: by its usage, some pending job of the queue would be
// within the guarantee. The state is unchanged afterwards.
Breach breach_of(state::State& state, QueueId queue);

}  // namespace berth::sim

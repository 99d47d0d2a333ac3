#pragma once
// Why a guarantee is breached: a job waits that would lie within it. Asked of the scheduler's own trial placement at
// that instant, when nothing more can start.
//
//   unserved   with everybody gone who borrows beside the queue it would find its places, and those who are leaving
//              already do not make enough room. The scheduler owes it a claim
//   leaving    it is promised places, or will find them, and those who hold them are saving their work
//   no place   with everybody gone who borrows it would still find none: those within their guarantees stand in the way

#include "model/ids.h"
#include "state/state.h"

namespace berth::sim {

enum class Breach { kUnserved, kLeaving, kNoPlace };

// Of a queue in which, by what runs there, some waiting job would lie within the guarantee. The state is as it was
// afterwards.
Breach breach_of(state::State& state, QueueId queue);

}  // namespace berth::sim

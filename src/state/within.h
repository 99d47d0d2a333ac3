#pragma once
// What is within guarantees and what is borrowed, as it is told and billed. A charge is within at a queue if it is
// inside the guarantee of that queue and of every queue above it. Every other charge is borrowed there: a job of
// another queue may reclaim it. A queue without a guarantee has no charge within, also where its parent has one.
//
// The view of a job, its start event and with it the bill, the view of a queue, and metrics all go by this. The
// scheduler has a notion of its own for the order of jobs (State::guaranteed): it leaves out queues without a
// guarantee.

#include <cstdint>

#include "model/resources.h"
#include "state/state.h"

namespace berth::state {

// Returns true if a charge with the mask `within` (Charge::within) is within at the queue.
bool is_within_all(const State& state, QueueId queue, std::uint64_t within);

// Returns the part of the queue's usage that is within at it. The rest of its usage is borrowed. The cost grows with
// the number of charges that are borrowed at the queues above; it is constant if nothing is.
Amounts usage_within_all(const State& state, const QueueState& queue);

}  // namespace berth::state

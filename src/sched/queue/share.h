#pragma once
// Share: what a queue counts when it is compared with its siblings. A leaf counts its usage: the dominant share over
// its weight (DRF; Ghodsi et al., NSDI'11, 4.1). For a parent the dominant share of the sum below it would be unfair: a
// child that holds much of a resource that no other child wants would starve its siblings. So the children of a parent
// are first rescaled to the least share among those that could use more, and then summed (H-DRF; Bhattacharya et al.,
// SoCC'13, 4.3).
//
// One rule differs from the paper: it is about a child that cannot use more now, for lack of a resource or of jobs. The
// paper does not rescale it. Here it counts in full only in the resource of which the parent's next job takes most, and
// is rescaled in the others. So a child that holds all of another resource does not starve its siblings, and a child
// that holds much of the same resource is not hidden.
//
// Past usage, where it is configured, counts as if the queue used the average of it now.
//
// Shares are exact. Only the rescaling rounds, down at 2^-30, the same on every machine.

#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "base/timestamp.h"
#include "model/resources.h"
#include "state/past_usage.h"
#include "state/state.h"

namespace berth::sched {

using state::SharedAmounts;

// Returns what is bound and nominated below the queue, plus the decaying average of its past usage if the configuration
// sets a half-life.
SharedAmounts shared_usage(const state::State& state, const state::QueueState& queue, Timestamp now);

// Returns the dominant share: the largest part of the fleet that the amounts are in one dimension, divided by the
// weight.
Fraction dominant_share(const state::State& state, const SharedAmounts& amounts, std::int64_t weight);
// Returns the dominant share of shared_usage, over the queue's weight.
Fraction dominant_share(const state::State& state, const state::QueueState& queue, Timestamp now);

// Returns the dimension (an index into kSharedDims) in which the amounts are the largest part of the fleet.
std::size_t most_asked(const state::State& state, const Amounts& asked);

// Returns the amounts times least / share. Returns them unchanged if `share` is not above `least`.
SharedAmounts rescaled(SharedAmounts amounts, const Fraction& share, const Fraction& least);

}  // namespace berth::sched

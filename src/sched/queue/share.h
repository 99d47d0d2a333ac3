#pragma once
// Share: what a queue's usage counts when it is compared with its siblings. A leaf counts what it uses: its dominant
// share over its weight (DRF; Ghodsi et al., NSDI'11, 4.1). A parent cannot be taken by the dominant share of the sum
// below it: a child that holds much of what nobody else wants would make its siblings starve. So its children are
// rescaled to the least of those that could use more, before they are summed (H-DRF; Bhattacharya et al.,
// SoCC'13, 4.3).
//
// One thing is berth's own: a child that cannot use more now, for lack of a resource or of jobs, is not left as it is.
// It counts in full only in the resource that the parent's next job takes most of, and is rescaled in the others: one
// that holds all of another resource does not starve its siblings, and one that holds much of the same is not hidden.
//
// Past usage, where it counts, is as if the queue used the average of it now.
//
// Exact but for the rescaling, which rounds down at 2^-30, everywhere the same.

#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "base/timestamp.h"
#include "model/resources.h"
#include "state/past_usage.h"
#include "state/state.h"

namespace berth::sched {

using state::SharedAmounts;

// What is bound and promised below the queue, and the decaying average of what it has used, where the configuration
// gives it a half-life.
SharedAmounts shared_usage(const state::State& state, const state::QueueState& queue, Timestamp now);

// The largest part of the fleet that the amounts are in one dimension, divided by the weight.
Fraction dominant_share(const state::State& state, const SharedAmounts& amounts, std::int64_t weight);
// The same of shared_usage.
Fraction dominant_share(const state::State& state, const state::QueueState& queue, Timestamp now);

// The dimension (index into kSharedDims) in which the amounts are the largest part of the fleet.
std::size_t most_asked(const state::State& state, const Amounts& asked);

// The amounts times least / share, or as they are where the share is not above the least.
SharedAmounts rescaled(SharedAmounts amounts, const Fraction& share, const Fraction& least);

}  // namespace berth::sched

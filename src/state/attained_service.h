#pragma once
// Attained service: what a job has had of the fleet, and the level that it stands on for it. Gu et al., "Tiresias: A
// GPU Cluster Manager for Distributed Deep Learning", NSDI'19, section 3.2 (discretized two-dimensional least attained
// service), with a bound on waiting instead of the paper's PromoteKnob: that one gives a job its service back, and it
// may be stopped again and again.
//
// 1. Service is GPUs times the time they are held, over all attempts; it is known of every job, whatever its run time.
// 2. A queue without thresholds has one level, 0. With k of them a job stands on 1 to k + 1, or, promoted, on 0.
// 3. The service of a waiting job stands still, so while it waits it can only be promoted.
// 4. A job is promoted once it has waited promote_after in all, in the line and free to start, and for good: the sum
//    of its waits never falls.

#include <cstdint>

#include "base/timestamp.h"
#include "state/job_state.h"
#include "state/queue_state.h"

namespace berth::state {

// Thousandths of a GPU times milliseconds.
std::int64_t service_of(const JobState& job, Timestamp now);

// How long it has waited in all: in the line, and not before its earliest start.
std::int64_t waited_ms(const JobState& job, Timestamp now);

// When the waiting job will be promoted; never() where nobody is, or it has been.
Timestamp promoted_from(const QueueState& leaf, const JobState& job);

std::int32_t level_of(const QueueState& leaf, const JobState& job, Timestamp now);

// When the running job stands behind jobs of the level, if nothing changes: maybe in the past; never() if it never
// will.
Timestamp behind_level_from(const QueueState& leaf, const JobState& job, std::int32_t level);

}  // namespace berth::state

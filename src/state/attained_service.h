#pragma once
// Attained service: the GPU time that a job has had so far, and the level in its leaf queue that follows from it. Lower
// levels go first. Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI'19, section
// 3.2 (discretized two-dimensional least attained service). A bound on waiting replaces the paper's PromoteKnob.
// PromoteKnob gives a job its service back, so the job could be preempted again and again.
//
// 1. Service is GPUs times the time that the job held them, summed over all attempts. It is known for every job,
//    whatever its run time.
// 2. A queue without thresholds has one level, 0. With k thresholds a job has a level from 1 to k + 1, or 0 once it is
//    promoted.
// 3. The service of a pending job does not change. So its level can change only by promotion.
// 4. A job is promoted once its total waiting time reaches promote_after_s. Only the time in which the job could have
//    started counts. A promoted job stays promoted, because the total waiting time never falls.

#include <cstdint>

#include "base/timestamp.h"
#include "state/job_state.h"
#include "state/queue_state.h"

namespace berth::state {

// Returns the service of the job up to `now`, in milli-GPUs times milliseconds.
std::int64_t service_of(const JobState& job, Timestamp now);

// Returns the total time that the job has been pending and free to start, in milliseconds. Time before its `not_before`
// does not count.
std::int64_t waited_ms(const JobState& job, Timestamp now);

// Returns when the pending job will be promoted; never() if its queue promotes no jobs or the job has level 0 already.
Timestamp promoted_from(const QueueState& leaf, const JobState& job);

// Returns the level of the job at `now`.
std::int32_t level_of(const QueueState& leaf, const JobState& job, Timestamp now);

// Returns the time from which the running job ranks behind pending jobs of `level`, if nothing changes. The time may be
// in the past; never() if it will not rank behind them. From then on such a pending job may preempt it.
Timestamp behind_level_from(const QueueState& leaf, const JobState& job, std::int32_t level);

}  // namespace berth::state

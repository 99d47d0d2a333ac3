#pragma once
// The grace period of a stopping job: the time between the request to stop and the kill.

#include "state/state.h"

namespace berth::state {

// Returns when the grace period of the attempt ends: at the deadline of its stop, or earlier if a node with a task that
// has not exited shuts down before that. The notice of the shutdown may come, or be shortened, after the stop began.
// Requires a stop.
Timestamp grace_ends(const State& state, const AttemptState& attempt);

// Returns true if the eviction of the job is cancelled when `preemptor` no longer needs its places. The whole job must
// have been asked to stop for this preemptor alone, by reclaim or preemption. It must not have acknowledged the stop,
// been killed, or had a task exit since.
bool goes_on_without(const JobState& job, JobId preemptor);

// grace_left_ms() returns the grace period that the job would get if it were evicted now, in milliseconds.
// grace_used_ms() returns the part that earlier, cancelled evictions have used up. The used part recovers as time
// passes. Without this rule, preemptors that come one after another could each evict the job, cancel, and give it a new
// full grace period; none would get the places. At most the configured grace counts as used, also if it was shortened
// since. Both require an attempt.
std::int64_t grace_left_ms(const State& state, const JobState& job, Timestamp now);
std::int64_t grace_used_ms(const State& state, const JobState& job, Timestamp now);

}  // namespace berth::state

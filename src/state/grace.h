#pragma once
// Until when an attempt that was asked to stop may go on: to the deadline that it was given, and no longer than a node
// that it still has tasks on and that goes away by notice, also when the notice came, or was shortened, after the stop.

#include "state/state.h"

namespace berth::state {

Timestamp grace_ends(const State& state, const AttemptState& attempt);  // it has a stop

// Whether the job goes on when the claimant for which it was asked to stop wants its places no more: all of it was
// asked, for that claimant alone, and it has not begun to leave.
bool goes_on_without(const JobState& job, JobId preemptor);

// What is left of the attempt's grace, in milliseconds, if a claimant asks it to stop. What it used before it was let
// off comes back as time passes: who claims one after the other, each let it off for places that came free elsewhere,
// would never have its places otherwise. Where the cluster's grace was shortened since, no more was used than that.
std::int64_t grace_left_ms(const State& state, const JobState& job, Timestamp now);
std::int64_t grace_used_ms(const State& state, const JobState& job, Timestamp now);

}  // namespace berth::state

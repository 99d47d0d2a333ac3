#pragma once
// Nominate: step 6 of the cycle for one job that is admitted and does not fit. Its victims are asked to leave and keep
// what they hold until they are gone; the job is nominated the places that become free.

#include "model/ids.h"
#include "sched/cycle.h"

namespace berth::sched {

// Returns true if victims were found and the job is nominated. A nomination that would have to be withdrawn at once for
// a pending job is deferred to the end of the cycle (evict_after_all), unless `at_any_rate`.
bool nominate(Cycle& cycle, JobId id, bool at_any_rate = false);

// Evaluates the deferred preemptors again: when the jobs they were deferred for have been served, in the next cycle;
// when this cycle has decided nothing, now.
void evict_after_all(Cycle& cycle);

}  // namespace berth::sched

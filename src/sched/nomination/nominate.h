#pragma once
// Nominate: step 6 of the cycle, for one job that passes quota and does not fit. Victims are searched, and the job is
// nominated the places that they will free. The victims are asked to leave and keep their resources until they are
// gone.

#include "model/ids.h"
#include "sched/cycle.h"

namespace berth::sched {

// Returns true if victims were found and the job is nominated. If a pending job would preempt the job as soon as it
// starts, and only this nomination would keep that pending job waiting, the nomination is put off to the end of the
// cycle (evict_after_all), unless `at_any_rate`.
bool nominate(Cycle& cycle, JobId id, bool at_any_rate = false);

// Handles the preemptors that were put off. If this cycle has decided anything, another cycle follows at once and
// evaluates them again. If it has decided nothing, the first of them that finds victims is nominated now.
void evict_after_all(Cycle& cycle);

}  // namespace berth::sched

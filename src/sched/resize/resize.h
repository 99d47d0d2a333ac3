#pragma once
// Resize: step 8 of the cycle. Consolidation moves jobs so that a job that lacks places fits; what is free after that,
// and not reserved, goes to elastic gangs below their count.

#include "sched/cycle.h"

namespace berth::sched {

// Moves jobs where a pending job then fits. Only in cycles that searched for reservations (SeekDecision).
void consolidate(Cycle& cycle);

// Scales up elastic gangs beside nominations and backfill reservations.
void scale_up(Cycle& cycle);

}  // namespace berth::sched

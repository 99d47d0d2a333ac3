#pragma once
// Resize: step 8 of the cycle. Consolidation moves running jobs so that a job that lacks places fits. Then elastic
// gangs below their full count scale up on what is free and not reserved.

#include "sched/cycle.h"

namespace berth::sched {

// Decides moves after which a pending job fits. Runs only in cycles that searched for reservations (SeekDecision).
void consolidate(Cycle& cycle);

// Scales up elastic gangs beside nominations and backfill reservations.
void scale_up(Cycle& cycle);

}  // namespace berth::sched

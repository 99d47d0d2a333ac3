#pragma once
// Serve: step 2 of the cycle. Nominated jobs go before all pending jobs, by priority and age. A nominated job starts
// wherever it fits now, unless a pending job would preempt it there at once. Otherwise it starts at its nominated
// places when they are free.

#include "sched/cycle.h"

namespace berth::sched {

// Starts each nominated job, or keeps or withdraws its nomination.
void serve_nominations(Cycle& cycle);

}  // namespace berth::sched

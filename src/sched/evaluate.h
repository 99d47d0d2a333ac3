#pragma once
// Evaluate: steps 4 to 6 of the cycle for one pending job. The job starts if quota, places and backfill reservations
// allow it. Otherwise victims are searched, and the job is nominated if there are any. Otherwise the job is refused,
// and all later jobs of its equivalence class with it.

#include <vector>

#include "model/ids.h"
#include "model/job.h"
#include "sched/cycle.h"
#include "sched/queue/order.h"

namespace berth::sched {

// Evaluates the job that `order` returned last.
void evaluate(Cycle& cycle, Order& order, JobId id);

// Refuses the jobs that need not be evaluated, because equal jobs were refused their places.
void refuse_rest(Cycle& cycle, const Order& order);

// Decides to start the job at `placements`, which must be free. Tasks above min_count are bound at once as a scale-up.
void start(Cycle& cycle, JobId id, std::vector<TaskPlacement> placements);

}  // namespace berth::sched

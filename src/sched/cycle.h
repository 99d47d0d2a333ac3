#pragma once
// The scheduling cycle: the page to read first. `run_cycle` takes the state and the time and returns a plan. It tries
// everything in a transaction on the state (state/transaction.h) and rolls it back, so the state is unchanged when it
// returns.

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "base/timestamp.h"
#include "model/ids.h"
#include "model/plan.h"
#include "sched/backfill/earliest_start.h"
#include "sched/nomination/preemption_conflicts.h"
#include "sched/place/place.h"
#include "sched/preempt/eviction_limits.h"
#include "sched/requeue/cycle_cache.h"
#include "sched/requeue/verdicts.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

// Returns the decisions of one cycle, in the order in which they were made.
Plan run_cycle(state::State& state, Timestamp now);

// One cycle while it runs: the transaction, the plan so far, and what one step leaves for the next.
struct Cycle {
  Cycle(state::State& s, Timestamp t) : state(s), now(t), transaction(s), verdicts(s) {}
  ConflictSearch conflict_search() { return {transaction, state, now, victims, work, reevaluate_at}; }
  void reevaluate_by(Timestamp when) { reevaluate_at = std::min(reevaluate_at, when); }

  state::State& state;
  Timestamp now;
  state::Transaction transaction;
  Plan plan;
  SearchStats work;

  std::set<JobId> victims;                       // jobs that this cycle evicts, scales down or moves
  std::size_t evicted = 0;                       // number of victims that are evicted as a whole
  StoppedBelow stopped_below;                    // that number, by queue
  std::vector<ExpectedEnd> starting;             // expected ends of the jobs that this cycle starts
  std::set<JobId> decided;                       // jobs that this cycle starts or nominates
  std::set<JobId> withdrawn;                     // jobs whose nomination this cycle serves or withdraws
  std::vector<JobId> deferred;                   // preemptors that a pending job would preempt at once
  bool cancels_evictions = false;                // a nominated job starts elsewhere: its victims go on
  bool refused_at_places = false;                // quota refused a job at the places that it found
  bool refused_to_borrow = false;                // a used-up budget refused a job that would borrow
  Timestamp reevaluate_at = Timestamp::never();  // time alone may change what the cycle decides, then

  Verdicts verdicts;
  CycleCache cache;
};

}  // namespace berth::sched

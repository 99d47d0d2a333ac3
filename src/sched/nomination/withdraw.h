#pragma once
// Withdraw: a nomination that can no longer be served. The job waits in its queue again, and its nominated places are
// free for other jobs in the same cycle.

#include "sched/cycle.h"
#include "sched/nomination/preemption_conflicts.h"
#include "state/state.h"

namespace berth::sched {

// Withdraws the nomination, with `why` for its event.
void withdraw(Cycle& cycle, const state::JobState& job, const char* why);

// Withdraws the nomination for the pending job of `conflict`. The victims go on; other jobs are evaluated in the next
// cycle, when that is in the log.
void withdraw_for_conflict(Cycle& cycle, const state::JobState& job, const NominationConflict& conflict);

// Requeues the parked jobs that the nominated places and the quota of `preemptor` may let start. Transactions do not
// mark queues or nodes as freed, so this must be called wherever a nomination ends within a cycle.
void requeue_parked(state::State& state, const state::JobState& preemptor);

// Returns true if a pending job would preempt the nominated one, for which others move, as soon as it starts: the moves
// would be for nothing. Requires that its nomination is lifted.
bool moves_are_futile(Cycle& cycle, const state::JobState& job);

// Returns the pending job for which the nomination must be withdrawn, if there is one and no victim has left yet.
// Requires that the nomination is lifted.
NominationConflict conflict_of_nomination(Cycle& cycle, const state::JobState& job);

}  // namespace berth::sched

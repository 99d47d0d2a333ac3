#pragma once
// Withdraw: ends a nomination that can no longer be served. The job waits in its queue again. Its nominated places are
// free for other jobs in the same cycle.

#include "sched/cycle.h"
#include "sched/nomination/preemption_conflicts.h"
#include "state/state.h"

namespace berth::sched {

// Withdraws the nomination; `why` is the text of its event.
void withdraw(Cycle& cycle, const state::JobState& job, const char* why);

// Withdraws the nomination in favour of the pending job of `conflict`. The evictions for it are cancelled. The cycle
// ends after step 2, so other jobs are evaluated in the next one, when the withdrawal is in the log.
void withdraw_for_conflict(Cycle& cycle, const state::JobState& job, const NominationConflict& conflict);

// Requeues the parked jobs that may start now because of the nominated places and the quota that `preemptor` gives up.
// Transactions do not mark queues or nodes as freed, so this must be called wherever a nomination ends within a cycle.
void requeue_parked(state::State& state, const state::JobState& preemptor);

// Returns true if other jobs move for the nominated job and a pending job would preempt it as soon as it starts: the
// moves would be for nothing. Requires that its nomination is lifted.
bool moves_are_futile(Cycle& cycle, const state::JobState& job);

// Returns the pending job for which the nomination must be withdrawn, if there is one and no victim has left yet.
// Requires that the nomination is lifted.
NominationConflict conflict_of_nomination(Cycle& cycle, const state::JobState& job);

}  // namespace berth::sched

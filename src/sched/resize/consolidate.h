#pragma once
// Consolidation: moves that undo fragmentation. A pending job may find enough free GPUs in all, but not together. Then
// other jobs are asked to save and to leave their nodes for free places elsewhere, so that the job fits.
//
// 1. No moved job loses its place. Its new places are free and are nominated to it before it is asked to leave. When it
//    has left it starts there before all pending jobs. It stays within the guarantees that it is within now, and it
//    stays in its pool. Nodes with planned maintenance are not used.
// 2. Only jobs that lose nothing move: they save when they are asked to leave, or they are replicas of a service that
//    allows it. All their tasks are on one node, they have run their minimum, their priority is not above that of the
//    job that starts, and they are not interactive. An elastic gang moves only while it has no scaled-up tasks. A moved
//    job is not moved again for an hour; its minimum run time goes on as if it had not moved.
// 3. No more GPUs move than start. The set of moves is minimal: without any one of them the job would not start. Nodes
//    where the least has to move are tried first. The search is greedy, so it may miss moves that exist.
// 4. Moves are searched at most once a minute, for the first few jobs in order that lack places. No more jobs move in
//    an hour than scheduling.consolidations_per_hour, which is 0 by default. No job moves if a backfill reservation
//    (sched/backfill/backfill.h) lets the pending job start as soon.
//
// Termination. Moves end no job for good and change no quota. Each set of moves serves one start, and the moved jobs
// start again without moving others. So for fixed demand and capacity there are no more sets of moves than starts, and
// starts are finitely many (sched/preempt/preempt.h). To these come the sets whose job lost its nomination; such a job
// is nominated again only after ever longer pauses (state/back_off.h).

#include <optional>
#include <set>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place/place.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

struct MoveSearch {
  state::State& state;
  state::Transaction& transaction;  // what the cycle has decided; unchanged by the search
  Timestamp now;
  SearchStats& work;
  const std::set<JobId>& already_victims;  // victims of this cycle
  const std::set<JobId>& decided;          // started or nominated by this cycle
};

// The moves that let the first pending job start that lacks places and can be helped by moves, if there is one.
struct MovesFound {
  std::optional<MoveDecision> decision;
  Timestamp reevaluate_at = Timestamp::never();  // time alone may allow other moves then
};

// Returns the moves. Places that the plan reserves for other jobs are not used.
MovesFound find_moves(const MoveSearch& search, const Plan& plan);

// Returns true if the running job could be moved for `preemptor`. Its minimum run time is not checked.
bool may_move_for(const state::State& state, const state::JobState& job, const state::JobState& preemptor);

}  // namespace berth::sched

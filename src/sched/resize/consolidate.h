#pragma once
// Consolidation: moves that undo fragmentation. Where enough is free in all, but in pieces, for a job that waits,
// others are asked to save and leave their nodes for places that are free elsewhere, so that what is free stands
// together.
//
// 1. Nobody loses its place. Whoever moves is promised places before it is asked to leave: they are free now, kept for
//    it while it leaves, and it starts there first of all when it has left. It keeps its standing: where it was within
//    a guarantee it is so there, and it stays in its pool. Nodes for which maintenance is planned are not used.
// 2. Only such jobs move as lose nothing: they save when they are asked to leave, or are replicas of a service that
//    allows it; they have all tasks on one node, have run their minimum, have no higher priority than the job that
//    starts, and nobody waits at a terminal for them. An elastic gang moves only when it has not grown. Who has moved
//    is left in peace for an hour; its minimum run time goes on as if it had not.
// 3. No more GPUs move than start, and the moves are minimal: with any of them left out the job would not start. Of the
//    nodes those are tried first on which the least has to move. It is a greedy search: where it finds nothing there
//    may still be moves that do.
// 4. Moves are looked for once a minute at most, for the first few that lack places in the order of the moment, and no
//    more jobs move within an hour than scheduling.consolidations_per_hour says, which is none if it does not say
//    anything. Where a hold (sched/backfill/backfill.h) lets the job start as soon, nobody moves for it.
//
// Termination. Moves stop nobody for good and change no quota. Each set of them serves one start, of a job that does
// not move anybody to get it; so for fixed demand and capacity there are at most as many sets as starts, which are
// finitely many (sched/preempt/preempt.h), and those whose job lost its promise, which claims ever later
// (state/back_off.h).

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
  state::Transaction& transaction;  // what the cycle has decided so far; as before when the search is over
  Timestamp now;
  SearchStats& work;
  const std::set<JobId>& already_victims;  // victims of this cycle
  const std::set<JobId>& decided;          // started or nominated by it
};

// The moves that let the first of those start who lack places and can be helped, or nothing.
// Starts that the plan holds for others are not touched.
std::optional<MoveDecision> find_moves(const MoveSearch& search, const Plan& plan);

// Whether the running job could be moved for that one, but for its minimum run time.
bool may_move_for(const state::State& state, const state::JobState& job, const state::JobState& preemptor);

}  // namespace berth::sched

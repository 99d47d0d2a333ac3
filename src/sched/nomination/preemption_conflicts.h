#pragma once
// Preemption conflicts: whether a nominated job may start at another place, and whether its nomination is kept. The
// aim: no job starts only to be evicted at once.
//
// 1. A start has a conflict if a pending job, the challenger, could evict the job as soon as it has started there. A
//    challenger of the same queue does so by priority or level. One of another queue does so because the start would
//    borrow what that queue is guaranteed. The search for victims itself decides this, in a transaction in which the
//    job runs there and the evictions for it are cancelled, as they would be. A challenger that would find places
//    beside the job counts too, if the rules alone allow the eviction: jobs evaluated before it may take those places.
//    Of each equivalence class only the first job is checked. Jobs that will never fit and nominated jobs, which have
//    places, are no challengers.
// 2. A nomination keeps its victims from all other jobs. If a challenger could start or evict without the nomination,
//    and cannot while it is kept, the nomination is withdrawn. Otherwise the challenger would wait until the victims
//    have left, then evict the preemptor, and then wait for jobs that have started beside it meanwhile. The nomination
//    is withdrawn only while all its victims would go on, or only scale down. So no job is evicted for nothing, and
//    every eviction still raises the potential (sched/preempt/preempt.h). A gang that is scaling down does so all the
//    same, and the challenger waits for that instead.
// 3. A challenger of another queue may be able to do neither, and find room only where the preemptor's victims leave.
//    Then the preemption may be futile: the preemptor would evict its victims, be reclaimed at once, and have nothing
//    left to evict. Such a preemption is not carried out and other victims are sought. A nomination for it is withdrawn
//    if no victim has left yet. A challenger below the same child of the common ancestor of preemptor and victim does
//    not count here: what the preemption frees belongs to that child all the same.
//
// Termination. When a nomination is withdrawn, no job starts and no job is evicted for it. Then all other jobs are
// evaluated in their order. If the free resources go to another job than the challenger, the preemptor may be nominated
// and withdrawn again. But each withdrawal is a lost nomination. After the first loss it may evict again at once, after
// the second only after 10 s, after the third after 20 s, and so on (state/back_off.h). So at one instant a nomination
// is withdrawn at most twice for one preemptor, and in a time T about log T times.

#include <optional>
#include <set>
#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place/place.h"
#include "sched/preempt/preempt.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

// With what all questions about conflicts are asked. The state is as before when an answer is returned.
struct ConflictSearch {
  state::Transaction& transaction;
  state::State& state;
  Timestamp now;
  const std::set<JobId>& already_victims;  // victims of this cycle, which no challenger evicts
  SearchStats& work;
  Timestamp& reevaluate_at;  // brought forward to the first time at which a challenger may find more victims
};

// What becomes of a nominated job that could start at other places than those of its nomination.
struct StartConflict {
  bool has_conflict = false;
  JobId withdraws_for = JobId::none();  // the pending job for which the nomination is withdrawn
};

// Returns the conflict of the preemptor at the placements that it found; victims of this cycle may be evicted. Requires
// that its nomination is lifted.
StartConflict find_start_conflict(const ConflictSearch& search, const state::JobState& preemptor,
                                  const std::vector<TaskPlacement>& placements);

// Returns true if a challenger could evict the job as soon as it has started there. Requires that the job is not
// nominated, or that its nomination is lifted. Victims of this cycle may have been removed from the transaction.
bool could_be_stopped(const ConflictSearch& search, const state::JobState& job,
                      const std::vector<TaskPlacement>& placements);

// Returns true if the pending job finds no places beside the job and could evict it as soon as it has started there.
bool could_stop(const ConflictSearch& search, const state::JobState& waiting, const state::JobState& job,
                const std::vector<TaskPlacement>& placements);

// Returns all challengers that could, of the first sixteen for which the rules allow it.
std::vector<const state::JobState*> who_could_stop(const ConflictSearch& search, const state::JobState& job,
                                                   const std::vector<TaskPlacement>& placements);

// Places that a preemptor is nominated, and the guarantees in which room is kept for it (bit = depth).
struct NominatedPlaces {
  const std::vector<TaskPlacement>& placements;
  std::uint64_t within;
};

// Victims that leave for a preemptor, or would.
struct Leaving {
  const std::vector<JobId>& victims;
  const std::vector<std::uint32_t>& keeps;  // how many tasks of each victim stay; empty: none
};

// What becomes of a nomination, or of one that is not made yet, if a challenger could evict the preemptor as soon as it
// starts there.
struct NominationConflict {
  JobId withdraws_for = JobId::none();      // the challenger that could start or evict without the nomination
  bool reclaimed = false;                   // by a challenger whose queue alone would gain
  JobId futile_because_of = JobId::none();  // the first challenger after which the preemptor had nothing left to evict
};
NominationConflict find_nomination_conflict(const ConflictSearch& search, const state::JobState& preemptor,
                                            const NominatedPlaces& nominated, const Leaving& leaving);

// The eviction that makes the pending job fit, and what would become of its nomination.
struct EvictionFound {
  std::optional<EvictDecision> decision;
  NominationConflict conflict;
  // Where there is no decision: as in VictimsFound.
  bool left_out = false;
  bool too_dear = false;
  Timestamp reevaluate_at = Timestamp::never();  // of all searches that were needed
};

// Returns the eviction, or none. Where the preemptor would be reclaimed at once, two more are tried among other
// victims: one that is not reclaimed goes first, then one that is not futile, then the first.
EvictionFound find_eviction(state::Transaction& transaction, const VictimSearch& search,
                            const state::JobState& preemptor, SearchStats& work);

// Returns true if all victims of the nomination would go on if it were withdrawn. A victim that has ended meanwhile has
// lost nothing, nor has one that only scales down.
bool nobody_has_left_for(const state::State& state, const state::JobState& preemptor);

// Cancels in the transaction the evictions for the preemptor, as they are cancelled when it starts elsewhere or when
// its nomination is withdrawn. A victim that only scales down does so all the same.
void cancel_evictions_for(state::Transaction& transaction, const state::State& state, const state::JobState& preemptor);

}  // namespace berth::sched

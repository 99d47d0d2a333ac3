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

#include <set>
#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place/place.h"
#include "sched/preempt/preempt.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

struct StartConflict {
  bool has_conflict = false;
  JobId withdraws_for = JobId::none();
};

// Of the claimant, whose nomination is lifted, at the placements that it found. The trial is as before.
StartConflict find_start_conflict(state::Transaction& transaction, state::State& state,
                                  const state::JobState& preemptor, const std::vector<TaskPlacement>& placements,
                                  Timestamp now, SearchStats& work);

// Whether a job that is promised nothing could be stopped as soon as it has started there; by somebody who stops none
// of those who are spoken for, whom the trial may have removed.
bool could_be_stopped(state::Transaction& transaction, state::State& state, const state::JobState& job,
                      const std::vector<TaskPlacement>& placements, const std::set<JobId>& already_victims,
                      Timestamp now, SearchStats& work);

// Whether one who waits could stop the job as soon as it has started there: he finds no places beside it.
bool could_stop(state::Transaction& transaction, state::State& state, const state::JobState& waiting,
                const state::JobState& job, const std::vector<TaskPlacement>& placements,
                const std::set<JobId>& already_victims, Timestamp now, SearchStats& work);

// All of those who could, of the first sixteen for whom the rules allow it.
std::vector<const state::JobState*> who_could_stop(state::Transaction& transaction, state::State& state,
                                                   const state::JobState& job,
                                                   const std::vector<TaskPlacement>& placements,
                                                   const std::set<JobId>& already_victims, Timestamp now,
                                                   SearchStats& work);

// Places promised to a claimant, and of which guarantees room is kept for it (bit = depth).
struct NominatedPlaces {
  const std::vector<TaskPlacement>& placements;
  std::uint64_t within;
};

// Those who leave for a claimant, or would.
struct Leaving {
  const std::vector<JobId>& victims;
  const std::vector<std::uint32_t>& keeps;  // so many tasks of each go on; empty: none
};

// What becomes of a promise, or of a claim that is not made yet, when somebody could stop the claimant as soon as it
// starts there.
struct NominationConflict {
  JobId withdraws_for = JobId::none();      // who could start or claim without it
  bool reclaimed = false;                   // by somebody whose queue alone would gain
  JobId futile_because_of = JobId::none();  // the first of those after whom it had nothing left to claim
};
NominationConflict find_nomination_conflict(state::Transaction& transaction, state::State& state,
                                            const state::JobState& preemptor, const NominatedPlaces& promise,
                                            const Leaving& leaving, const std::set<JobId>& already_victims,
                                            Timestamp now, SearchStats& work);

// The eviction that makes the waiting job fit, or nothing; and what would become of it. Where the claimant would be
// reclaimed at once two more are sought among other victims: one that is not, else that is not in vain, else the first.
struct EvictionFound {
  std::optional<EvictDecision> decision;
  NominationConflict find_nomination_conflict;
};
EvictionFound find_eviction(state::Transaction& transaction, VictimSearch search, const state::JobState& preemptor,
                            SearchStats& work);

// All who were asked to leave for the claimant would go on if it gave way; who has finished meanwhile has lost nothing,
// nor has who only gives back what it has grown by.
bool nobody_has_left_for(const state::State& state, const state::JobState& preemptor);

// The first of the contestants who could start or claim if the claimant, whose nomination is lifted if it has one, gave
// way, and cannot where this is promised to it; or none().
JobId first_kept_waiting(state::Transaction& transaction, state::State& state, const state::JobState& preemptor,
                         const NominatedPlaces& promise, std::vector<const state::JobState*> challengers,
                         const std::set<JobId>& already_victims, Timestamp now, SearchStats& work);

// Those who leave for the claimant go on, on the trial, as they will when it starts elsewhere or loses its promise; who
// only gives back does so all the same.
void cancel_evictions_for(state::Transaction& transaction, const state::State& state, const state::JobState& preemptor);

}  // namespace berth::sched

#pragma once
// Whether a promised claimant may start at another place, or keeps to its promise: nobody starts only to be stopped.
//
// 1. A start is contested where somebody who waits could stop the job as soon as it has started: in its own queue by
//    priority or level, from others because it would borrow what they are guaranteed. That is asked of the search for
//    victims itself, on a trial on which the job runs there and its victims have been let off, as they would be. Who
//    would find places beside the job contests it, too, if the rules alone would let him stop it: others are asked
//    before him who may take those. Of each lane its first is asked; neither who will never fit nor claimants, who
//    have places.
// 2. Who keeps to a promise keeps his victims from all others. Where one who contests him could start or claim if the
//    promise were dropped, and cannot as long as it stands, it gives way. Else that one would wait until they have
//    left, stop the claimant then, and wait for whoever has started beside it meanwhile. But only as long as all its
//    victims would go on, or only give back what they have grown by: nobody is stopped for it in vain, so that every
//    stop still raises the potential (sched/preempt/preempt.h). What is being given back is given back all the same,
//    and he who contests waits for it instead.
// 3. Where one of another queue contests it who could do neither, and only what the claimant's victims leave makes room
//    for him, the claim may be in vain: the claimant would stop them, be reclaimed at once, and have nothing left to
//    claim. Then it is not made, other victims are sought, and a promise for which nobody has left yet is dropped. One
//    below the same child of the common ancestor of claimant and victim does not keep it: what the claim brings is that
//    queue's all the same.
//
// Termination. When a promise gives way nobody starts and nobody is stopped; then all others are asked, in their order.
// If it is not he who contested that gets what is free, the claimant may claim again and give way again. But that is a
// lost promise: of those the first alone lets it claim again at once, the second only after 10 s, the third after 20 s,
// and so on (state/back_off.h). So one instant sees a claimant give way twice at most, and a time T about log T times.

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

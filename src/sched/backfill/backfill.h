#pragma once
// Backfill: a blocked job gets a backfill reservation: concrete places and its earliest start. Later jobs may use these
// places only if they will be gone by then. This is EASY backfilling (Lifka, "The ANL/IBM SP Scheduling System",
// JSSPP'95; Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling
// the IBM SP2 with Backfilling", TPDS'01), with as many reservations per pool as the configuration says.
//
// 1. A reservation covers concrete devices, cores and memory. The rest of its nodes is free to all jobs.
// 2. These jobs may pass a reservation:
//   - its owner;
//   - a job of higher priority; in the same queue also one on a lower level of attained service or with a nearer
//     deadline;
//   - a job within its guarantees, which could take its places back anyway, and a job that could reclaim from the owner
//     as soon as the owner has started there. Neither may if all reserved places are in burst pools, which back no
//     guarantee;
//   - a job that is expected to be gone at the reserved start. The end is certain with a time limit and an estimate
//     otherwise. A job that saves its work is gone when its grace after the limit is over. A service is never expected
//     to be gone;
//   - every job, if a maintenance window clears all reserved places before the start.
// 3. Learned run times are often wrong, so reserving for every job would cost more than it gives. A job that has waited
//    less than backfill_after gets a reservation only if time limits and stops that have begun guarantee its start. For
//    a job that has waited longer, estimates count too.
// 4. A reservation is kept until its owner starts or cannot get a reservation any more. It is worked out again when
//    half of the time to it has passed (at least a minute and at most an hour), when it is due, and when a job that may
//    pass starts in its places and is not expected to be gone by then. The slip of a reservation is how far the real
//    start is after the first reserved start. If fewer starts can be reserved than there are reservations, they are
//    searched again once a minute at most, and when a reservation becomes free.
// 5. Of the jobs of one equivalence class, the first kLookedAtBehindReservation are checked whether they may pass.
// 6. Preemptors (sched/preempt/preempt.h) respect the reservations that they may not pass. Their places are beside
//    them, also if they start elsewhere while their victims are leaving. Reclaim within all guarantees and higher
//    priority do pass. A job that fits except for a reservation searches victims as if the reserved places were taken;
//    otherwise free GPUs would leave it worse off.

#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/backfill/earliest_start.h"
#include "sched/place/place.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

// Returns true if the job may run on places that are reserved for `owner`.
bool may_pass(const state::State& state, const state::JobState& job, const state::JobState& owner, Timestamp now);

// Returns the owners of reservations that the job may not pass, in the order of their ids.
std::vector<JobId> not_passed(const state::State& state, const state::JobState& job, Timestamp now);

// Returns the first owner that the placements would delay, because a reserved place is on one of their nodes; none() if
// they delay no owner.
JobId first_delayed(const state::State& state, QueueId queue, const std::vector<JobId>& owners,
                    std::span<const TaskPlacement> placements);

// Jobs of one class that are checked behind a reservation: the first, and so many after it.
inline constexpr std::size_t kLookedAtBehindReservation = 256;

// How long the job holds its places if it starts now, in milliseconds; the largest number if it is not known. By what
// was known of the job at submission, or when anything first became known. So a class that is parked behind a
// reservation need not be tried before the reservation changes.
std::int64_t length_ms(const state::State& state, const state::JobState& job);

// Returns when the reservation is to be worked out again.
Timestamp due_again(const state::BackfillReservation& hold);

// Step 7 of the cycle. Reservations that are due are worked out again or dropped. Then the first blocked jobs in order
// whose start is known get the free reservations. `decided`: jobs that this cycle has started or nominated.
struct ReservationRound {
  state::State& state;
  state::Transaction& transaction;
  Timestamp now;
  SearchStats& work;
  const std::vector<ExpectedEnd>& starting;
  const std::set<JobId>& decided;
};
// Returns when that has to be done again though nothing else happens.
Timestamp renew_reservations(const ReservationRound& round, Plan& plan);

// Sets aside the places that are reserved for the owners.
void set_reserved_aside(const state::State& state, state::Transaction& transaction, std::span<const JobId> owners);

// Sets aside the places that are reserved after the plan, so that scale-up (sched/resize/elastic.h) does not use them.
void set_reserved_aside(const state::State& state, state::Transaction& transaction, const Plan& plan);

}  // namespace berth::sched

#pragma once
// Backfill: a blocked job is held concrete places for its earliest start, and later jobs may use those places only if
// they are gone by then. EASY backfilling (Lifka, "The ANL/IBM SP Scheduling System", JSSPP'95; Mu'alem and Feitelson,
// "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling",
// TPDS'01), with as many holds per pool as the configuration says.
//
// 1. A hold is of whole places: devices, cores and memory. What else its nodes have is free to all.
// 2. Past a hold go: its owner; higher priority, lower levels of attained service and nearer deadlines; what lies
//    within its guarantees (it could take its places back anyway, but for those in burst pools), or could reclaim from
//    the owner as soon as that has started there; and what is expected to be gone at the start that is held, hard where
//    it has a time limit, soft where its run time is an estimate. A service never is. Where a maintenance window clears
//    all that is held before the start, everybody goes past.
// 3. Learned run times are wrong often enough that holding for everybody costs more than it gives. A job that has
//    waited less than backfill_after is held a start only where time limits and stops that have begun vouch for it;
//    estimates count for those that have waited longer.
// 4. A hold is kept until its owner starts or cannot be held a start any more. It is worked out again when half of the
//    time to it has passed, at least a minute and at most an hour, when it is due, and when somebody who may pass
//    starts in its places and is not expected to be gone by then. How far the real start then lies behind the first
//    that was held is the hold's slip. Where fewer starts can be held than there are holds, they are looked for again
//    once a minute at most, and when a hold becomes free.
// 5. Of a queue's jobs of one shape the first kLookedAtBehindReservation are asked whether they may pass.
// 6. Claimants (sched/preempt/preempt.h) respect the holds that they may not pass: what they take lies beside them,
// also when
//    they start elsewhere while their victims are leaving. Reclaim within all guarantees and higher priority pass. Who
//    would fit but for a hold claims as if what is held were taken; else free GPUs would leave it worse off.

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/backfill/earliest_start.h"
#include "sched/place/place.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

// Whether the job may run on places that are held for `owner`.
bool may_pass(const state::State& state, const state::JobState& job, const state::JobState& owner, Timestamp now);

// The owners of holds that the job may not pass, in the order of their ids.
std::vector<JobId> not_passed(const state::State& state, const state::JobState& job, Timestamp now);

// The first of the owners that would be delayed by the placements: a place that is held for it is on one of their
// nodes. none() when nobody would.
JobId first_delayed(const state::State& state, QueueId queue, const std::vector<JobId>& owners,
                    std::span<const TaskPlacement> placements);

// Jobs of one lane that are looked at behind a hold: the first, and so many after it.
inline constexpr std::size_t kLookedAtBehindReservation = 256;

// When the job is gone if it starts now, in seconds from now; the largest number where nobody knows.
inline std::int64_t length_s(const state::JobState& job) { return job.expected_s > 0 ? job.expected_s : kUnlimited; }

// When the hold is to be worked out again.
Timestamp due_again(const state::BackfillReservation& hold);

// Step 7 of the cycle: the holds that are due are worked out again or dropped, and the first blocked jobs of the order
// that can be held a start get the holds that are free. `decided` are the jobs that this cycle has started or
// nominated.
struct ReservationRound {
  state::State& state;
  state::Transaction& transaction;
  Timestamp now;
  SearchStats& work;
  const std::vector<ExpectedEnd>& starting;
  const std::set<JobId>& decided;
};
void renew_reservations(const ReservationRound& round, Plan& plan);

// What growth (sched/resize/elastic.h) must leave: the places that are held after the plan.
void set_reserved_aside(const state::State& state, state::Transaction& transaction, const Plan& plan);

}  // namespace berth::sched

#pragma once
// Start: steps 4 and 5 of the cycle for one job, for all parts that ask whether a job would start: the cycle,
// nominations, requeueing, preemption, backfill, consolidation and explanation. The stages, in their order:
//
// 1. Quota: the GPU models on which no ceiling, user limit or lending limit refuses the least counts of the job.
// 2. Places for the whole gang on those models.
// 3. Quota for exactly those places. A whole node counts all that it has, so quota may refuse the best fit and not
//    another node: then nodes that fit below the ceilings one by one are tried, and then nodes of which as many fit as
//    the job has tasks. A gang that fits only on nodes of which some count more and others less is refused.
// 4. Backfill reservations: where the places would delay the owner of one that the job may not pass, stages 1 to 3 run
//    again with all reserved places set aside that it may not pass.
//
// find_places has stages 1 to 3, try_start all of them. A part that needs less, or remembers answers, leaves stages out
// by the question or answers them from its own memo; so no part can come to another answer than the cycle.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/backfill/backfill.h"
#include "sched/place/place.h"
#include "sched/queue/admit.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

// Whether stage 3 runs. Requeueing leaves it out: it only asks whether the cycle has to evaluate the job at all.
enum class QuotaOfPlaces { kChecked, kUnchecked };

struct StartQuestion {
  const state::State& state;
  const state::JobState& job;
  Timestamp now;
  SearchStats& work;
  const Admission* admission = nullptr;  // the answer of stage 1, where it is known
  QuotaOfPlaces quota_of_places = QuotaOfPlaces::kChecked;
  bool tells_why = true;  // if not, an answer without places may have no reason, which saves the work of finding it

  StartQuestion only_whether() const { return {state, job, now, work, admission, quota_of_places, false}; }
};

// Places for every task, or why there are none.
using StartAnswer = PlaceAnswer;

// Returns the answer of stages 1 to 3: reserved places are as free as others.
StartAnswer find_places(const StartQuestion& question);

// Returns the answer of all stages. The state is as before.
StartAnswer try_start(state::Transaction& transaction, const StartQuestion& question);

// Why a job does not start: the reason of stages 1 to 3, or the owner of a reservation that it would delay.
struct StartRefusal {
  const Reason* why = nullptr;
  JobId delayed = JobId::none();
  explicit operator bool() const { return why != nullptr || delayed.valid(); }
};

// The stages in their order, with the answers where `memo` keeps them. Returns what refuses; its reason lies in the
// memo. Requires of the memo:
//   const Reason* refusal(question)       stages 1 to 3; null where there are places
//   std::span<const TaskPlacement> places()   those places; asked only where there are reservations
//   bool fits_beside(question, owners)    whether there are places beside what is reserved for the owners
template <class Memo>
StartRefusal refuses_start(const StartQuestion& question, Memo& memo) {
  if (const Reason* why = memo.refusal(question)) return {why};
  if (question.state.reservations().empty()) return {};
  std::vector<JobId> owners = not_passed(question.state, question.job, question.now);
  const JobId delayed = first_delayed(question.state, question.job.queue, owners, memo.places());
  if (!delayed.valid() || memo.fits_beside(question, std::move(owners))) return {};
  return {nullptr, delayed};
}

// Returns what `ask` returns while the places that are reserved for the owners are set aside. The state is as before.
template <class Ask>
auto beside_reservations(state::Transaction& transaction, const state::State& state, std::span<const JobId> owners,
                         Ask&& ask) {
  const state::Transaction::Mark mark = transaction.mark();
  set_reserved_aside(state, transaction, owners);
  auto answer = ask();
  transaction.rollback_to(mark);
  return answer;
}

// Stage 3 for `placements`: drops tasks beyond min_count, the last first, until quota and `also` allow the rest.
// Returns nothing where they do; else what quota refuses of the least counts, or a reason of no code where `also` did.
template <class Also>
std::optional<Reason> trim_to_quota(const state::State& state, const state::JobState& job,
                                    std::vector<TaskPlacement>& placements, Also&& also) {
  std::optional<Reason> refusal;
  const bool allowed = trim_until(job.spec, placements, [&](const std::vector<TaskPlacement>& rest) {
    refusal = refuses(state, job, rest);
    return !refusal && also(rest);
  });
  return allowed ? std::nullopt : std::optional(std::move(refusal).value_or(Reason()));
}

inline std::optional<Reason> trim_to_quota(const state::State& state, const state::JobState& job,
                                           std::vector<TaskPlacement>& placements) {
  return trim_to_quota(state, job, placements, [](const std::vector<TaskPlacement>&) { return true; });
}

// Stages 1 to 3 for a preemptor, in these pools and without the second tries of stage 3: what `justified` allows is
// tried on one GPU model after the other, where `by_model`, else on all of them at once.
template <class Justified>
std::optional<std::vector<TaskPlacement>> find_places_of_preemptor(const StartQuestion& question, Pools pools,
                                                                   bool by_model, Justified&& justified) {
  const auto& [state, job, now, work, admission, quota_of_places, tells_why] = question;
  ModelMask models = pools == Pools::kOrdinary ? models_beside_burst(state, job) : admit(state, job).models;
  if (models == 0 || gpu_milli_short(state, job, models, pools) > 0) return std::nullopt;
  while (auto placements = try_place(state, job, models, pools, work)) {
    const ModelMask first = model_of_first(state, *placements);
    if (!trim_to_quota(state, job, *placements, justified)) return placements;
    if (!by_model || (models & ~first) == models) return std::nullopt;
    models &= ~first;
  }
  return std::nullopt;
}

// The reason that it would delay the owner of the reservation.
Reason would_delay(const state::State& state, JobId owner);

}  // namespace berth::sched

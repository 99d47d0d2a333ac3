#include "sched/start.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sched/backfill/backfill.h"
#include "sched/place/energy.h"
#include "sched/place/image_locality.h"
#include "sched/queue/admit.h"
#include "sched/queue/quota.h"
#include "sched/resize/elastic.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

namespace {

// What is left below the ceilings on the way to the root, and of what the user may have, for each of so many.
Amounts left_for_each(const State& state, const JobState& job, std::int64_t count) {
  Amounts left;
  for (std::size_t dim = 0; dim < kDims; ++dim) left[dim] = kUnlimited;
  for (QueueId id = job.queue; id.valid(); id = state.queue(id).parent) {
    const state::QueueState& queue = state.queue(id);
    for (std::size_t dim = 0; dim < kDims; ++dim) {
      if (queue.max[dim] == kUnlimited) continue;
      left[dim] = std::min(left[dim], (queue.max[dim] - queue.usage[dim] - queue.nominated[dim]) / count);
    }
    if (queue.max_gpu_milli_per_user == kUnlimited) continue;
    const std::int64_t used = queue.used_by(job.spec.user).gpu_milli;
    left[kDimGpu] = std::min(left[kDimGpu], (queue.max_gpu_milli_per_user - used) / count);
  }
  return left;
}

// The least part of an exclusive job, on nodes that the ceilings leave to it.
std::optional<std::vector<TaskPlacement>> fit_below_ceilings(const State& state, JobState job, ModelMask models,
                                                             SearchStats& work) {
  std::int64_t tasks = 0;
  for (TaskGroup& group : job.spec.groups) tasks += group.count = group.least();
  for (const std::int64_t count : {std::int64_t{1}, tasks}) {
    const Amounts most = left_for_each(state, job, count);
    auto placements = try_place_at_most(state, job, models, most, work);
    if (placements && !refuses(state, job, *placements)) return placements;
    if (tasks == 1) break;
  }
  return std::nullopt;
}

// The guarantees on the way to the root that it would lie in there.
std::uint64_t standing_at(const State& state, const JobState& job, std::span<const TaskPlacement> placements) {
  if (state.burst_amounts_of(job.spec, placements)) return 1;
  return state.within_mask(job.queue, state.amounts_of(job.spec, placements));
}

bool stands_no_lower(const State& state, const JobState& job, std::span<const TaskPlacement> others,
                     std::span<const TaskPlacement> places) {
  return (standing_at(state, job, places) & ~standing_at(state, job, others)) == 0;
}

struct Fitting {
  std::vector<TaskPlacement> places;
  ModelMask models = 0;  // among which they were chosen
};

// Those models on which it lies within its guarantees.
ModelMask models_within(const State& state, const JobState& job, ModelMask models) {
  ModelMask within = 0;
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const ModelMask model = ModelMask{1} << m;
    const Amounts asked = amounts_on(state, job.spec, GpuModelId(static_cast<std::uint16_t>(m)));
    if ((models & model) != 0 && within_guarantee(state, job.queue, asked)) within |= model;
  }
  return within;
}

// Where guarantees are of models and it would borrow at its places: places on models on which it would not; else those
// that it has.
template <class Allows>
Fitting within_if_it_can(const State& state, const JobState& job, Fitting fitting, SearchStats& work, Allows&& allows) {
  bool of_models = false;
  for (QueueId q = job.queue; q != state.root(); q = state.queue(q).parent)
    of_models = of_models || guarantees_models(state.queue(q));
  if (!of_models) return fitting;
  const auto is_within = [&](const std::vector<TaskPlacement>& found) {
    const std::vector<TaskPlacement> start = job.is_elastic() ? split_growth(job.spec, found).start : found;
    return !state.burst_amounts_of(job.spec, start) &&
           within_guarantee(state, job.queue, state.amounts_of(job.spec, start));
  };
  if (is_within(fitting.places)) return fitting;
  const ModelMask within = models_within(state, job, fitting.models);
  if (within == 0 || within == fitting.models) return fitting;
  Reason why;
  auto others = place(state, job, within, work, why);
  if (!others || !allows(job, *others) || !is_within(*others)) return fitting;
  return {std::move(*others), within};
}

// Places on the thriftiest models that hold as much of it, and where it stands no lower; else those that it has.
template <class Allows>
Fitting cheaper_models(const State& state, const JobState& job, Fitting fitting, SearchStats& work, Allows&& allows) {
  for (const ModelMask thrifty : thrifty_models(state, job, fitting.models)) {
    Reason why;
    auto others = place(state, job, thrifty, work, why);
    if (!others || !allows(job, *others) || others->size() < fitting.places.size()) continue;
    if (stands_no_lower(state, job, *others, fitting.places)) return {std::move(*others), thrifty};
  }
  return fitting;
}

// Places of these models where more of its tasks find their image, and nothing else is worse; else those that it has.
template <class Allows>
std::vector<TaskPlacement> nearer_to_images(const State& state, const JobState& job, Fitting fitting, SearchStats& work,
                                            Allows&& allows) {
  if (!image_is_missing(state, job.spec, fitting.places)) return std::move(fitting.places);
  auto others = place_by_images(state, job, fitting.models, work);
  const auto in_burst_pools = [&](std::span<const TaskPlacement> some) {
    return state.burst_amounts_of(job.spec, some).has_value();
  };
  if (others && allows(job, *others) && are_nearer_to_images(state, job.spec, *others, fitting.places) &&
      in_burst_pools(*others) == in_burst_pools(fitting.places) && stands_no_lower(state, job, *others, fitting.places))
    return std::move(*others);
  return std::move(fitting.places);
}

}  // namespace

std::optional<std::vector<TaskPlacement>> start_now(const State& state, const JobState& job, SearchStats& work,
                                                    Reason& why) {
  const Admission admission = admit(state, job);
  if (admission.models == 0) {
    why = admission.reason;
    return std::nullopt;
  }
  const auto allows = [&](const JobState& one, std::vector<TaskPlacement>& placements) {
    return trim_until(one.spec, placements, [&](const std::vector<TaskPlacement>& rest) {
      const auto reason = refuses(state, one, rest);
      if (reason) why = *reason;
      return !reason;
    });
  };
  const auto places_of = [&](const JobState& one) -> std::optional<std::vector<TaskPlacement>> {
    auto placements = place(state, one, admission.models, work, why);
    if (!placements || allows(one, *placements)) return placements;
    if (why.code != ReasonCode::kQuotaLentOut || !state.has_burst_pools()) return std::nullopt;
    // Of other models nothing may be kept back, and what is kept back is of no matter in burst pools.
    const Reason lending = why;
    const ModelMask lent = admission.models & models_beside_burst(state, one);
    if (lent != 0 && lent != admission.models) {
      placements = place(state, one, lent, work, why);
      if (placements && allows(one, *placements)) return placements;
    }
    placements = try_place(state, one, admission.models, Pools::kBurst, work);
    if (placements && allows(one, *placements)) return placements;
    why = lending;
    return std::nullopt;
  };
  auto placements = places_of(job);
  if (placements) {
    Fitting fitting = within_if_it_can(state, job, {std::move(*placements), admission.models}, work, allows);
    fitting = cheaper_models(state, job, std::move(fitting), work, allows);
    return nearer_to_images(state, job, std::move(fitting), work, allows);
  }
  if (!is_quota_reason(why.code)) return placements;
  Reason again;
  std::swap(why, again);
  // What is left of an elastic gang when the last ones are dropped may count more than its least part by itself would:
  // nodes differ.
  if (job.is_elastic()) {
    JobState least = job;
    for (TaskGroup& group : least.spec.groups) group.count = group.least();
    placements = places_of(least);
  }
  if (!placements && job.spec.exclusive) placements = fit_below_ceilings(state, job, admission.models, work);
  if (!placements) why = again;
  return placements;
}

Reason would_delay(const State& state, JobId owner) {
  Reason why;
  why.code = ReasonCode::kWouldDelayReservation;
  why.job = owner;
  why.limit = state.job(owner)->reservation->start.ms;
  return why;
}

std::optional<std::vector<TaskPlacement>> try_start(Transaction& transaction, State& state, const JobState& job,
                                                    Timestamp now, SearchStats& work, Reason& why) {
  auto placements = start_now(state, job, work, why);
  if (!placements || state.reservations().empty()) return placements;
  const std::vector<JobId> owners = not_passed(state, job, now);
  const JobId delayed = first_delayed(state, job.queue, owners, *placements);
  if (!delayed.valid()) return placements;
  const Transaction::Mark mark = transaction.mark();
  for (const JobId owner : owners) transaction.set_aside(owner, state.job(owner)->reservation->placements);
  Reason beside;
  placements = start_now(state, job, work, beside);
  transaction.rollback_to(mark);
  if (!placements) why = would_delay(state, delayed);
  return placements;
}

}  // namespace berth::sched

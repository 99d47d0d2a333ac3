#include "sched/start.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sched/place/energy.h"
#include "sched/place/image_locality.h"
#include "sched/queue/quota.h"
#include "sched/resize/elastic.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

namespace {

// Returns what the ceilings on the quota path and the user limits leave, divided by `count`.
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

// Returns places for an exclusive job at min_count, on nodes that the ceilings allow.
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

// Returns the guarantees on the quota path (bit = depth) that the job would be within at these places.
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
  ModelMask models = 0;  // the models among which the places were chosen
};

// Returns the models on which the job is within its guarantees.
ModelMask models_within(const State& state, const JobState& job, ModelMask models) {
  ModelMask within = 0;
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const ModelMask model = ModelMask{1} << m;
    const Amounts asked = amounts_on(state, job.spec, GpuModelId(static_cast<std::uint16_t>(m)));
    if ((models & model) != 0 && within_guarantee(state, job.queue, asked)) within |= model;
  }
  return within;
}

// If guarantees depend on the GPU model and the job would borrow at its places, returns places on models where it does
// not; else its places.
Fitting within_if_it_can(const State& state, const JobState& job, Fitting fitting, SearchStats& work) {
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
  auto others = try_place(state, job, within, work);
  if (!others || trim_to_quota(state, job, *others) || !is_within(*others)) return fitting;
  return {std::move(*others), within};
}

// Returns places on the most efficient models that hold as many tasks and where the job is within no fewer guarantees;
// else its places.
Fitting cheaper_models(const State& state, const JobState& job, Fitting fitting, SearchStats& work) {
  for (const ModelMask thrifty : thrifty_models(state, job, fitting.models)) {
    auto others = try_place(state, job, thrifty, work);
    if (!others || trim_to_quota(state, job, *others) || others->size() < fitting.places.size()) continue;
    if (stands_no_lower(state, job, *others, fitting.places)) return {std::move(*others), thrifty};
  }
  return fitting;
}

// Returns places on the same models where more tasks find their image and nothing else is worse; else its places.
std::vector<TaskPlacement> nearer_to_images(const State& state, const JobState& job, Fitting fitting,
                                            SearchStats& work) {
  if (!image_is_missing(state, job.spec, fitting.places)) return std::move(fitting.places);
  auto others = place_by_images(state, job, fitting.models, work);
  const auto in_burst_pools = [&](std::span<const TaskPlacement> some) {
    return state.burst_amounts_of(job.spec, some).has_value();
  };
  if (others && !trim_to_quota(state, job, *others) && are_nearer_to_images(state, job.spec, *others, fitting.places) &&
      in_burst_pools(*others) == in_burst_pools(fitting.places) && stands_no_lower(state, job, *others, fitting.places))
    return std::move(*others);
  return std::move(fitting.places);
}

// Stage 2.
StartAnswer places_on(const State& state, const JobState& job, ModelMask models, bool tells_why, SearchStats& work) {
  if (tells_why) return place(state, job, models, work);
  return {try_place(state, job, models, work), {}};
}

// Stages 2 and 3, and where a lending limit refuses the places: on models of which nothing is kept back, and then in
// burst pools, where what is kept back does not matter.
StartAnswer places_within_quota(const State& state, const JobState& job, ModelMask models, bool tells_why,
                                SearchStats& work) {
  StartAnswer answer = places_on(state, job, models, tells_why, work);
  if (!answer) return answer;
  const auto refusal = trim_to_quota(state, job, *answer.placements);
  if (!refusal) return answer;
  if (refusal->code != ReasonCode::kQuotaLentOut || !state.has_burst_pools()) return {std::nullopt, *refusal};
  const ModelMask lent = models & models_beside_burst(state, job);
  if (lent != 0 && lent != models) {
    answer.placements = try_place(state, job, lent, work);
    if (answer && !trim_to_quota(state, job, *answer.placements)) return answer;
  }
  answer.placements = try_place(state, job, models, Pools::kBurst, work);
  if (answer && !trim_to_quota(state, job, *answer.placements)) return answer;
  return {std::nullopt, *refusal};
}

// Quota refuses the places that were found: those of the least counts by themselves, and of whole nodes those that the
// ceilings leave. What is left of an elastic gang when its last tasks are dropped may count more than its least counts
// by themselves would, because nodes differ.
std::optional<std::vector<TaskPlacement>> places_that_count_less(const State& state, const JobState& job,
                                                                 ModelMask models, SearchStats& work) {
  std::optional<std::vector<TaskPlacement>> placements;
  if (job.is_elastic()) {
    JobState least = job;
    for (TaskGroup& group : least.spec.groups) group.count = group.least();
    placements = places_within_quota(state, least, models, false, work).placements;
  }
  if (!placements && job.spec.exclusive) placements = fit_below_ceilings(state, job, models, work);
  return placements;
}

// Memo of refuses_start that remembers nothing: each stage runs.
struct EachStage {
  Transaction& transaction;
  StartAnswer answer = {};

  const Reason* refusal(const StartQuestion& question) {
    answer = find_places(question);
    return answer ? nullptr : &answer.why;
  }
  std::span<const TaskPlacement> places() const { return *answer.placements; }
  bool fits_beside(const StartQuestion& question, std::span<const JobId> owners) {
    answer.placements = beside_reservations(transaction, question.state, owners,
                                            [&] { return find_places(question.only_whether()).placements; });
    return answer.placements.has_value();
  }
};

}  // namespace

StartAnswer find_places(const StartQuestion& question) {
  const auto& [state, job, now, work, known, quota_of_places, tells_why] = question;
  std::optional<Admission> asked;
  const Admission& admission = known != nullptr ? *known : asked.emplace(admit(state, job));
  if (admission.models == 0) return {std::nullopt, admission.reason};
  if (quota_of_places == QuotaOfPlaces::kUnchecked) return places_on(state, job, admission.models, tells_why, work);
  StartAnswer answer = places_within_quota(state, job, admission.models, tells_why, work);
  if (answer) {
    Fitting fitting = within_if_it_can(state, job, {std::move(*answer.placements), admission.models}, work);
    fitting = cheaper_models(state, job, std::move(fitting), work);
    answer.placements = nearer_to_images(state, job, std::move(fitting), work);
  } else if (is_quota_reason(answer.why.code)) {
    answer.placements = places_that_count_less(state, job, admission.models, work);
  }
  if (answer) answer.why = {};
  return answer;
}

StartAnswer try_start(Transaction& transaction, const StartQuestion& question) {
  EachStage stages{transaction};
  const StartRefusal refusal = refuses_start(question, stages);
  if (refusal.delayed.valid()) return {std::nullopt, would_delay(question.state, refusal.delayed)};
  return std::move(stages.answer);
}

Reason would_delay(const State& state, JobId owner) {
  Reason why;
  why.code = ReasonCode::kWouldDelayReservation;
  why.job = owner;
  why.limit = state.job(owner)->reservation->start.ms;
  return why;
}

}  // namespace berth::sched

#include "sched/queue/admit.h"

#include "sched/queue/quota.h"
#include "sched/resize/elastic.h"

namespace berth::sched {

using state::JobState;
using state::State;

namespace {

std::optional<Reason> over_quota(const State& state, const JobState& job, const Amounts& asked, const Amounts& in_burst,
                                 ChargeKind kind) {
  if (auto reason = over_max(state, job.queue, asked)) return reason;
  if (auto reason = over_user_limit(state, job, asked)) return reason;
  if (auto reason = over_budget(state, job.queue, asked, kind)) return reason;
  return over_lending(state, job.queue, asked, in_burst);
}

// Returns true if quota on the path may refuse the job on one GPU model and not on another. What the job counts in the
// other dimensions is the same on all models.
bool depends_on_model(const State& state, QueueId queue) {
  for (QueueId id = queue; id.valid(); id = state.queue(id).parent) {
    const state::QueueState& q = state.queue(id);
    if (!q.keepers.empty() || q.stopped_by(BudgetAction::kStopBorrowing) != nullptr) return true;
    for (std::size_t dim = kDimGpuEquivalent; dim < kDims; ++dim) {
      if (q.max[dim] != kUnlimited) return true;
    }
  }
  return false;
}

}  // namespace

bool may_burst(const State& state, const JobState& job) {
  for (std::uint32_t i = 0; state.has_burst_pools() && i < state.pools().size(); ++i) {
    if (state.pools()[i].burst && state.may_use(job.queue, job.spec.job_class, i)) return true;
  }
  return false;
}

Admission admit(const State& state, const JobState& job) { return admit(state, job, least_amounts(state, job.spec)); }

namespace {

// Takes the job as being in burst pools as a whole, or not at all. Where that counts against a budget, its places do
// (refuses): it may still start beside them.
Admission admit(const State& state, const JobState& job, const Amounts& least, bool burst) {
  Admission admission;
  if (auto reason = over_quota(state, job, least, burst ? least : Amounts(), ChargeKind::kStart)) return {0, *reason};
  if (least[kDimGpu] == 0) return {kAllModels, {}};
  if (!depends_on_model(state, job.queue) && !state.gpu_models().empty()) {
    return {(ModelMask{1} << state.gpu_models().size()) - 1, {}};
  }
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    const Amounts asked = amounts_on(state, job.spec, GpuModelId(static_cast<std::uint16_t>(m)));
    const auto reason = over_quota(state, job, asked, burst ? asked : Amounts(), ChargeKind::kStart);
    if (reason) {
      admission.reason = *reason;
    } else {
      admission.models |= ModelMask{1} << m;
    }
  }
  if (state.gpu_models().empty()) admission.reason.code = ReasonCode::kNeverFits;
  return admission;
}

}  // namespace

// While its places are not known, the whole job might be in burst pools, so this is assumed if the job may use one.
Admission admit(const State& state, const JobState& job, const Amounts& least) {
  return admit(state, job, least, may_burst(state, job));
}

ModelMask models_beside_burst(const State& state, const JobState& job) {
  return admit(state, job, least_amounts(state, job.spec), false).models;
}

bool admits_all_models(const State& state, const JobState& job) {
  const ModelMask all = (ModelMask{1} << state.gpu_models().size()) - 1;
  return (admit(state, job).models & all) == all;
}

std::optional<Reason> refuses(const State& state, const JobState& job, std::span<const TaskPlacement> placements) {
  const std::optional<Amounts> in_burst = state.burst_amounts_of(job.spec, placements);
  ChargeKind kind = in_burst ? ChargeKind::kInBurst : ChargeKind::kStart;
  if (job.is_elastic() && !in_burst && borrowing_is_stopped(state, job.queue)) {
    const StartAndGrowth split = split_growth(job.spec, {placements.begin(), placements.end()});
    if (!split.growth.empty()) kind = ChargeKind::kGrowth;
    // A guarantee may cover all of it together, and not what one of the two charges asks for.
    for (const auto& part : {split.start, split.growth}) {
      if (part.empty()) continue;
      if (auto reason = over_budget(state, job.queue, state.amounts_of(job.spec, part), kind)) return reason;
    }
  }
  return over_quota(state, job, state.amounts_of(job.spec, placements), in_burst.value_or(Amounts()), kind);
}

std::optional<Reason> refuses_growth(const State& state, const JobState& job,
                                     std::span<const TaskPlacement> placements) {
  const Amounts asked = state.amounts_of(job.spec, placements);
  const std::optional<Amounts> in_burst = state.burst_amounts_of(job.spec, placements);
  if (auto reason = over_max(state, job.queue, asked)) return reason;
  for (QueueId id = job.queue; id.valid(); id = state.queue(id).parent) {
    if (auto reason = over_user_gpus(state.queue(id), job.spec.user, asked)) return reason;
  }
  const ChargeKind kind = in_burst ? ChargeKind::kInBurst : ChargeKind::kGrowth;
  if (auto reason = over_budget(state, job.queue, asked, kind)) return reason;
  return over_lending(state, job.queue, asked, in_burst.value_or(Amounts()));
}

std::optional<Reason> gate(const State& state, const JobState& job, Timestamp now) {
  Reason reason;
  if (job.held) {
    reason.code = ReasonCode::kHeld;
  } else if (job.open_dependencies > 0) {
    reason.code = ReasonCode::kDependency;
    for (const Dependency& dependency : job.spec.dependencies) {
      if (state.job(dependency.job) != nullptr) reason.job = dependency.job;
    }
    if (const auto broken = state.broken_dependency(job)) {
      reason.code = ReasonCode::kDependencyNever;
      reason.job = *broken;
    }
  } else if (job.is_parent()) {
    reason.code = ReasonCode::kParent;
  } else if (job.not_before > now) {
    reason.code = ReasonCode::kEarliestStart;
    reason.limit = job.not_before.ms;
  } else {
    return std::nullopt;
  }
  return reason;
}

}  // namespace berth::sched

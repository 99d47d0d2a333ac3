#include "sched/queue/quota.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.h"
#include "base/planted.h"
#include "state/within.h"

namespace berth::sched {

using state::QueueState;
using state::State;

namespace {

Amounts without_models(const JobSpec& spec) {
  Amounts amounts;
  for (const TaskGroup& group : spec.groups) {
    const std::int64_t tasks = group.least();
    amounts[kDimGpu] += tasks * group.request.total_gpu_milli();
    amounts[kDimCpu] += tasks * group.request.cpu_milli;
    amounts[kDimMemory] = checked_add(amounts[kDimMemory], checked_multiply(tasks, group.request.memory_mib));
  }
  return amounts;
}

// Charges the group at the lightest GPU model that it accepts. The model's own dimension is charged only if the request
// names exactly one model.
void charge_least(const State& state, const TaskGroup& group, Amounts& amounts) {
  const std::int64_t milli = group.least() * group.request.total_gpu_milli();
  std::int64_t lightest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t m = 0; milli > 0 && m < state.gpu_models().size(); ++m) {
    if (!accepts(group.request, state.gpu_models()[m])) continue;
    lightest = std::min(lightest, state.gpu_models()[m].weight_permille);
    if (group.request.gpu_models.size() == 1) amounts[kDimFirstModel + m] += milli;
  }
  if (lightest != std::numeric_limits<std::int64_t>::max()) amounts[kDimGpuEquivalent] += milli * lightest;
}

}  // namespace

Amounts amounts_on(const State& state, const JobSpec& spec, GpuModelId model) {
  Amounts amounts = without_models(spec);
  for (const TaskGroup& group : spec.groups) {
    if (!accepts(group.request, state.gpu_models()[model.index()])) {
      charge_least(state, group, amounts);
      continue;
    }
    const std::int64_t milli = group.least() * group.request.total_gpu_milli();
    amounts[kDimGpuEquivalent] += milli * state.gpu_models()[model.index()].weight_permille;
    amounts[dim_of(model)] += milli;
  }
  return amounts;
}

Amounts least_amounts(const State& state, const JobSpec& spec) {
  Amounts amounts = without_models(spec);
  for (const TaskGroup& group : spec.groups) charge_least(state, group, amounts);
  return amounts;
}

std::optional<Reason> over_max(const State& state, QueueId queue, const Amounts& asked) {
  for (QueueId id = queue; id.valid(); id = state.queue(id).parent) {
    const QueueState& q = state.queue(id);
    if (planted(Bug::kMaxOnlyAtLeaf) && !q.is_leaf()) break;
    for (std::size_t dim = 0; dim < kDims; ++dim) {
      if (asked[dim] <= 0 || q.max[dim] == kUnlimited) continue;
      const std::int64_t used = checked_add(q.usage[dim], q.nominated[dim]);
      if (used <= q.max[dim] - asked[dim]) continue;
      Reason reason;
      reason.code = ReasonCode::kQuotaMax;
      reason.queue = id;
      reason.dim = static_cast<std::uint32_t>(dim);
      reason.asked = asked[dim];
      reason.used = used;
      reason.limit = q.max[dim];
      return reason;
    }
  }
  return std::nullopt;
}

std::optional<Reason> over_user_limit(const QueueState& queue, const std::string& user, const Amounts& asked) {
  if (!queue.limits_users()) return std::nullopt;
  const state::UserUsage used = queue.used_by(user);
  if (used.jobs >= queue.max_jobs_per_user) {
    Reason reason;
    reason.code = ReasonCode::kUserLimit;
    reason.queue = queue.id;
    reason.dim = kDims;
    reason.asked = 1;
    reason.used = used.jobs;
    reason.limit = queue.max_jobs_per_user;
    return reason;
  }
  return over_user_gpus(queue, user, asked);
}

std::optional<Reason> over_user_gpus(const QueueState& queue, const std::string& user, const Amounts& asked) {
  const std::int64_t most = queue.max_gpu_milli_per_user;
  if (asked[kDimGpu] == 0 || most == kUnlimited) return std::nullopt;
  const std::int64_t used = queue.used_by(user).gpu_milli;
  if (used + asked[kDimGpu] <= most) return std::nullopt;
  Reason reason;
  reason.code = ReasonCode::kUserLimit;
  reason.queue = queue.id;
  reason.dim = kDimGpu;
  reason.asked = asked[kDimGpu];
  reason.used = used;
  reason.limit = most;
  return reason;
}

std::optional<Reason> over_user_limit(const State& state, const state::JobState& job, const Amounts& asked) {
  for (QueueId id = job.queue; id.valid(); id = state.queue(id).parent) {
    if (auto reason = over_user_limit(state.queue(id), job.spec.user, asked)) return reason;
  }
  return std::nullopt;
}

namespace {

// Returns how much of the child's guarantee is neither used by it nor lent to its siblings.
std::int64_t kept_back(const QueueState& child, std::size_t dim) {
  if (!child.guaranteed.states(dim) || child.lending_limit[dim] == kUnlimited) return 0;
  const std::int64_t reserved = std::max<std::int64_t>(0, child.guaranteed.amounts[dim] - child.lending_limit[dim]);
  const std::int64_t used = child.usage[dim] - child.burst_usage[dim];
  return std::max<std::int64_t>(0, reserved - used - child.nominated[dim]);
}

// A capacity that children share, what is used of it, and what is requested of it.
struct Shared {
  std::int64_t capacity = 0;
  std::int64_t used = 0;
  std::int64_t asked = 0;
};

// Returns the two capacities that children share, the smaller one first: the parent's max, which counts all usage, and
// the part of the fleet outside burst pools, which alone backs guarantees.
std::array<Shared, 2> shared_by_children(const State& state, const QueueState& parent, std::size_t dim,
                                         const Amounts& asked, const Amounts& in_burst) {
  const std::int64_t used = parent.usage[dim] + parent.nominated[dim];
  const Shared ceiling{parent.max[dim], used, asked[dim]};
  const Shared fleet{state.capacity()[dim] - state.burst_capacity()[dim], used - parent.burst_usage[dim],
                     asked[dim] - in_burst[dim]};
  return ceiling.capacity < fleet.capacity ? std::array{ceiling, fleet} : std::array{fleet, ceiling};
}

}  // namespace

std::optional<Reason> over_lending(const State& state, QueueId queue, const Amounts& asked, const Amounts& in_burst) {
  for (QueueId id = queue; id != state.root(); id = state.queue(id).parent) {
    const QueueState& parent = state.queue(state.queue(id).parent);
    if (parent.keepers.empty()) continue;
    for (std::size_t dim = 0; dim < kDims; ++dim) {
      if (asked[dim] == 0) continue;
      std::int64_t kept = 0;
      for (const QueueId sibling : parent.keepers) {
        if (sibling != id) kept += kept_back(state.queue(sibling), dim);
      }
      if (kept == 0) continue;
      for (const Shared& shared : shared_by_children(state, parent, dim, asked, in_burst)) {
        if (shared.asked == 0 || shared.used + shared.asked <= shared.capacity - kept) continue;
        Reason reason;
        reason.code = ReasonCode::kQuotaLentOut;
        reason.queue = parent.id;
        reason.dim = static_cast<std::uint32_t>(dim);
        reason.asked = shared.asked;
        reason.used = shared.used;
        reason.limit = shared.capacity - kept;
        return reason;
      }
    }
  }
  return std::nullopt;
}

std::optional<Reason> over_budget(const State& state, QueueId queue, const Amounts& asked, ChargeKind kind) {
  for (QueueId id = queue; id.valid() && !planted(Bug::kBudgetIgnored); id = state.queue(id).parent) {
    const QueueState& q = state.queue(id);
    const state::BudgetState* stops = q.stopped_by(BudgetAction::kStopStarting);
    if (stops == nullptr) stops = q.stopped_by(BudgetAction::kStopBorrowing);
    if (stops == nullptr) continue;
    const bool only_borrowing = stops->config.when_used_up == BudgetAction::kStopBorrowing;
    if (only_borrowing && is_within_by_bill(state, queue, asked, kind)) continue;
    Reason reason;
    reason.code = stops->config.kind() == BudgetKind::kBudget ? ReasonCode::kBudget : ReasonCode::kGrant;
    reason.queue = id;
    reason.used = stops->mark.used;
    reason.limit = stops->mark.limit;
    return reason;
  }
  return std::nullopt;
}

bool borrowing_is_stopped(const State& state, QueueId queue) {
  for (QueueId id = queue; id.valid(); id = state.queue(id).parent) {
    if (state.queue(id).stopped_by(BudgetAction::kStopBorrowing) != nullptr) return true;
  }
  return false;
}

bool would_be_within(const State& state, QueueId queue, const Amounts& asked) {
  const QueueState& q = state.queue(queue);
  if (q.guaranteed.stated == 0) return false;  // most queues: saves the sum of what is within
  return inside_guarantee(q.within_or_nominated(), asked, q.guaranteed);
}

namespace {

// What victims free in a queue's guarantee: all that was within there, the part of it that was idle use (it borrows at
// its child), and the part that was within at the child on the preemptor's quota path too.
struct Left {
  Amounts within;
  Amounts idle;
  Amounts of_child;
};

// Returns what is used of the queue's guarantee once a start of `asked`, which is within at `child`, has displaced all
// idle use. At the child no more stays within than fits beside the start; the excess becomes idle use at the queue, so
// it is displaced there too.
Amounts stays(const QueueState& queue, const QueueState& child, const Amounts& asked, const Left& left = {}) {
  Amounts used = queue.within_or_nominated() - left.within - (queue.stack.idle_usage - left.idle);
  const Amounts beside = child.stack.within_above + child.nominated_within - left.of_child;
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    if (!child.guaranteed.states(dim) || asked[dim] == 0) continue;
    used[dim] -= std::max<std::int64_t>(beside[dim] + asked[dim] - child.guaranteed.amounts[dim], 0);
  }
  return used;
}

}  // namespace

std::vector<QueueId> claims_within(const State& state, QueueId queue, const Amounts& asked) {
  std::vector<QueueId> queues;
  std::optional<QueueId> child;  // the queue below, if the start is within there
  for (QueueId id = queue; id != state.root(); id = state.queue(id).parent) {
    const QueueState& q = state.queue(id);
    const bool within = child ? inside_guarantee(stays(q, state.queue(*child), asked), asked, q.guaranteed)
                              : would_be_within(state, id, asked);
    child = within ? std::optional(id) : std::nullopt;
    if (within) queues.push_back(id);
  }
  return queues;
}

namespace {

// Returns the part of the charge that the job's tasks from number `keep` on count.
Amounts given_back(const State& state, const state::JobState& job, const state::Charge& charge, std::uint32_t keep) {
  if (keep <= charge.first_task) return charge.amounts;
  if (keep >= charge.first_task + charge.tasks) return {};
  std::vector<TaskPlacement> stay;
  for (std::uint32_t t = charge.first_task; t < keep; ++t) stay.push_back(job.attempt->tasks[t].placement);
  return charge.amounts - state.amounts_of(job.spec, stay);
}

Left left_by(const State& state, const QueueState& queue, QueueId child, std::span<const JobId> victims,
             std::span<const std::uint32_t> keeps) {
  Left left;
  for (std::size_t v = 0; v < victims.size(); ++v) {
    const state::JobState& job = *state.job(victims[v]);
    if (!state.is_below(job.queue, queue.id)) continue;
    const bool of_child = child.valid() && state.is_below(job.queue, child);
    for (const state::Charge& charge : job.attempt->charges) {
      if ((charge.within >> queue.depth & 1U) == 0) continue;
      const Amounts amounts = given_back(state, job, charge, keeps[v]);
      const bool idle = job.queue != queue.id && (charge.within >> (queue.depth + 1) & 1U) == 0;
      left.within += amounts;
      if (idle) left.idle += amounts;
      if (of_child && !idle) left.of_child += amounts;
    }
  }
  return left;
}

}  // namespace

std::uint64_t within_of_nomination(const State& state, const state::JobState& job,
                                   std::span<const TaskPlacement> placements, std::span<const JobId> victims,
                                   std::span<const std::uint32_t> keeps) {
  std::uint64_t mask = 1;  // the root guarantees all that it has
  if (state.burst_amounts_of(job.spec, placements)) return mask;
  const Amounts asked = state.amounts_of(job.spec, placements);
  QueueId child;  // the queue below, if the job will be within there; else none()
  for (QueueId id = job.queue; id != state.root(); id = state.queue(id).parent) {
    const QueueState& queue = state.queue(id);
    if (!covers(queue.guaranteed, asked)) {
      child = QueueId::none();
      continue;
    }
    const Left left = left_by(state, queue, child, victims, keeps);
    const Amounts used =
        child.valid() ? stays(queue, state.queue(child), asked, left) : queue.within_or_nominated() - left.within;
    const bool within = inside_guarantee(used, asked, queue.guaranteed);
    child = within ? id : QueueId::none();
    if (within) mask |= std::uint64_t{1} << queue.depth;
  }
  return mask;
}

bool ranks_within(const State& state, QueueId queue, QueueId leaf, const Amounts& asked) {
  if (state.queue(queue).guaranteed.stated == 0) return false;  // most queues
  if (would_be_within(state, queue, asked)) return true;
  // Displacement helps only at an ancestor, and only where some charge is within because its child left the room idle.
  if (leaf == queue || state.queue(queue).stack.idle_usage == Amounts()) return false;
  const std::vector<QueueId> claims = claims_within(state, leaf, asked);
  return std::find(claims.begin(), claims.end(), queue) != claims.end();
}

bool guarantees_models(const QueueState& queue) {
  for (std::size_t dim = kDimGpuEquivalent; dim < kDims; ++dim) {
    if (queue.guaranteed.amounts[dim] > 0) return true;
  }
  return false;
}

bool within_guarantee(const State& state, QueueId leaf, const Amounts& asked) {
  std::uint64_t within = state.within_mask(leaf, asked);
  if (state.guaranteed(leaf, within)) return true;
  for (const QueueId id : claims_within(state, leaf, asked)) within |= std::uint64_t{1} << state.queue(id).depth;
  return state.guaranteed(leaf, within);
}

bool within_guarantee(const State& state, const state::JobState& job) {
  return within_guarantee(state, job.queue, least_amounts(state, job.spec));
}

namespace {

// Returns true if a start of the present cycle borrows at the queue. It may be the one that displaces idle use there
// when the cycle has ended, so no other start can count on that room. Such charges come last (state::Transaction).
bool has_borrowed_in_cycle(const QueueState& queue) {
  return !queue.borrowed.empty() && queue.borrowed.rbegin()->order == std::numeric_limits<Seq>::max();
}

}  // namespace

bool is_within_by_bill(const State& state, QueueId leaf, const Amounts& asked, ChargeKind kind) {
  if (kind == ChargeKind::kInBurst) return false;
  std::uint64_t within = state.within_mask(leaf, asked);
  if (state::is_within_all(state, leaf, within)) return true;
  if (kind == ChargeKind::kGrowth) return false;
  for (const QueueId id : claims_within(state, leaf, asked)) {
    const std::uint64_t bit = std::uint64_t{1} << state.queue(id).depth;
    if ((within & bit) == 0 && has_borrowed_in_cycle(state.queue(id))) return false;
    within |= bit;
  }
  return state::is_within_all(state, leaf, within);
}

Siblings below_common_ancestor(const State& state, QueueId preemptor, QueueId victim) {
  Siblings below;
  while (preemptor != victim) {
    if (state.queue(preemptor).depth >= state.queue(victim).depth) {
      below.preemptor = preemptor;
      preemptor = state.queue(preemptor).parent;
    } else {
      below.victim = victim;
      victim = state.queue(victim).parent;
    }
  }
  return below;
}

bool could_reclaim(const State& state, QueueId leaf, const Amounts& asked, QueueId other,
                   const std::optional<Amounts>& counts) {
  const Siblings sides = below_common_ancestor(state, leaf, other);
  const bool borrows = !counts || !ranks_within(state, sides.victim, other, *counts);
  return borrows && ranks_within(state, sides.preemptor, leaf, asked);
}

}  // namespace berth::sched

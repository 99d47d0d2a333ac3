#include "state/guarantee_decay.h"

#include <algorithm>

#include "base/checked.h"
#include "base/planted.h"

namespace berth::state {

namespace {

bool is_of_gpus(std::size_t dim) { return dim == kDimGpu || dim >= kDimFirstModel; }

// Returns true if `holds(d)` is true in a dimension d that decides whether the queue uses its guarantee (rule 1 of the
// header). If the guarantee states GPUs, only GPUs decide: a queue that keeps its cores busy may still leave its GPUs
// idle.
template <class Holds>
bool any_judged(const QueueState& queue, Holds&& holds) {
  const QuotaAmounts& stated = queue.configured;
  bool of_gpus = false;
  for (std::size_t d = 0; d < kDims; ++d) of_gpus = of_gpus || (stated.states(d) && is_of_gpus(d));
  for (std::size_t d = 0; d < kDims; ++d) {
    if (stated.states(d) && is_of_gpus(d) == of_gpus && holds(d)) return true;
  }
  return false;
}

}  // namespace

Amounts demand_of(const State& state, const JobSpec& spec) {
  Amounts amounts;
  for (const TaskGroup& group : spec.groups) {
    const std::int64_t tasks = group.least();
    const std::int64_t milli = tasks * group.request.total_gpu_milli();
    amounts[kDimGpu] += milli;
    amounts[kDimCpu] += tasks * group.request.cpu_milli;
    amounts[kDimMemory] = checked_add(amounts[kDimMemory], checked_multiply(tasks, group.request.memory_mib));
    if (group.request.gpu_models.size() != 1) continue;
    if (const auto model = state.gpu_model_named(group.request.gpu_models.front())) amounts[dim_of(*model)] += milli;
  }
  return amounts;
}

bool is_idle(const QueueState& queue, const Amounts& load) {
  return !any_judged(queue, [&](std::size_t d) { return load[d] > queue.guaranteed.amounts[d] / 2; });
}

bool wants_more(const QueueState& queue, const Amounts& load) {
  if (planted(Bug::kGuaranteeNotRestored)) return false;
  return any_judged(queue, [&](std::size_t d) {
    return load[d] > queue.guaranteed.amounts[d] && queue.guaranteed.amounts[d] < queue.configured.amounts[d];
  });
}

QuotaAmounts guarantee_after_idling(const QueueState& queue) {
  QuotaAmounts left = queue.guaranteed;
  for (std::size_t d = 0; d < kDims; ++d) {
    const std::int64_t used = planted(Bug::kUsedGuaranteeLost) ? 0 : queue.guarantee_use.idle_peak[d];
    const std::int64_t idle = left.amounts[d] - used;
    if (!left.states(d) || idle <= 0) continue;
    const std::int64_t unit = d == kDimMemory ? 1 : kMilli;
    left.amounts[d] = used + idle / 2 / unit * unit;
  }
  return left;
}

GuaranteeDue guarantee_due(const QueueState& queue) {
  const GuaranteeUse& use = queue.guarantee_use;
  if (!use.wanting_since.is_never()) return {use.wanting_since + queue.guarantee_decay_ms, true};
  if (use.idle_since.is_never() || guarantee_after_idling(queue) == queue.guaranteed) return {};
  return {use.idle_since + queue.guarantee_decay_ms, false};
}

ResourceAmounts named(const State& state, const QuotaAmounts& guarantee) {
  ResourceAmounts amounts;
  if (guarantee.states(kDimGpu)) amounts.gpu_milli = guarantee.amounts[kDimGpu];
  if (guarantee.states(kDimCpu)) amounts.cpu_milli = guarantee.amounts[kDimCpu];
  if (guarantee.states(kDimMemory)) amounts.memory_mib = guarantee.amounts[kDimMemory];
  for (std::size_t m = 0; m < state.gpu_models().size(); ++m) {
    if (!guarantee.states(kDimFirstModel + m)) continue;
    amounts.model_gpu_milli.emplace_back(state.gpu_models()[m].name, guarantee.amounts[kDimFirstModel + m]);
  }
  std::sort(amounts.model_gpu_milli.begin(), amounts.model_gpu_milli.end());
  return amounts;
}

// --- members of State ---

void State::count_demand(const JobState& job, int sign) {
  std::optional<Amounts> asked;  // computed only if a queue needs it
  for (QueueId id = job.queue; id.valid(); id = queue(id).parent) {
    QueueState& q = queue_mut(id);
    if (q.guarantee_decay_ms == 0) continue;
    if (!asked) asked = demand_of(*this, job.spec);
    if (sign > 0)
      q.demand += *asked;
    else
      q.demand -= *asked;
    touched_loads_.insert(id);
  }
}

void State::touch_load(QueueId queue_id) {
  for (QueueId id = queue_id; id.valid(); id = queue(id).parent) {
    if (queue(id).guarantee_decay_ms > 0) touched_loads_.insert(id);
  }
}

void State::note_loads() {
  for (const QueueId id : touched_loads_) note_load(queue_mut(id));
  touched_loads_.clear();
}

void State::note_load(QueueState& queue) {
  const Amounts load = queue.usage + queue.demand;
  GuaranteeUse& use = queue.guarantee_use;
  if (!is_idle(queue, load)) {
    use.idle_since = Timestamp::never();
    use.idle_peak = {};
  } else {
    if (use.idle_since.is_never()) use.idle_since = now_;
    for (std::size_t d = 0; d < kDims; ++d) use.idle_peak[d] = std::max(use.idle_peak[d], load[d]);
  }
  if (!wants_more(queue, load))
    use.wanting_since = Timestamp::never();
  else if (use.wanting_since.is_never())
    use.wanting_since = now_;
  set_guarantee_due(queue, guarantee_due(queue).at);
}

void State::forget_guarantee_use(QueueState& queue) {
  set_guarantee_due(queue, Timestamp::never());
  queue.guarantee_use = {};
}

void State::set_guarantee_due(QueueState& queue, Timestamp due) {
  Timestamp& listed = queue.guarantee_use.due;
  if (!listed.is_never()) guarantee_times_.erase({listed, queue.id});
  listed = due;
  if (!listed.is_never()) guarantee_times_.emplace(listed, queue.id);
}

}  // namespace berth::state

#include "state/impossible.h"

#include "base/checked.h"
#include "model/document/quantity.h"

namespace berth::state {

namespace {

std::int64_t tasks_of(const JobSpec& spec, const TaskGroup& group) {
  return spec.kind == JobKind::kService ? 1 : group.least();
}

Amounts least_of(const State& state, const JobSpec& spec) {
  Amounts least;
  for (const TaskGroup& group : spec.groups) {
    const std::int64_t tasks = tasks_of(spec, group);
    const std::int64_t gpus = checked_multiply(tasks, group.request.total_gpu_milli());
    least[kDimGpu] += gpus;
    least[kDimCpu] += checked_multiply(tasks, group.request.cpu_milli);
    least[kDimMemory] = checked_add(least[kDimMemory], checked_multiply(tasks, group.request.memory_mib));
    if (group.request.gpu_models.size() != 1) continue;
    if (const auto model = state.gpu_model_named(group.request.gpu_models.front())) least[dim_of(*model)] += gpus;
  }
  return least;
}

// What the groups that accept the model count together on it, as the scheduler admits them: on one model, or not.
Amounts amounts_on(const State& state, const JobSpec& spec, std::size_t model) {
  Amounts amounts;
  for (const TaskGroup& group : spec.groups) {
    if (!accepts(group.request, state.gpu_models()[model])) continue;
    const std::int64_t milli = checked_multiply(tasks_of(spec, group), group.request.total_gpu_milli());
    amounts[kDimFirstModel + model] = checked_add(amounts[kDimFirstModel + model], milli);
    amounts[kDimGpuEquivalent] =
        checked_add(amounts[kDimGpuEquivalent], checked_multiply(milli, state.gpu_models()[model].weight_permille));
  }
  return amounts;
}

std::optional<ImpossibleLimit> max_of(const QueueState& queue, const Amounts& least) {
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    if (least[dim] > 0 && queue.max[dim] < least[dim])
      return ImpossibleLimit{queue.id, false, dim, least[dim], queue.max[dim]};
  }
  return std::nullopt;
}

std::optional<ImpossibleLimit> max_on_path(const State& state, QueueId queue, const Amounts& least) {
  for (QueueId id = queue; id.valid(); id = state.queue(id).parent) {
    if (auto limit = max_of(state.queue(id), least)) return limit;
  }
  return std::nullopt;
}

// The limit on the model on which the group comes nearest to starting, or nothing if it may start on one.
std::optional<ImpossibleLimit> ruled_out_on_each_model(const State& state, QueueId queue, const JobSpec& spec,
                                                       const TaskGroup& group) {
  std::optional<ImpossibleLimit> nearest;
  std::int64_t models = 0;
  for (std::size_t m = 0; group.request.gpus > 0 && m < state.gpu_models().size(); ++m) {
    if (!accepts(group.request, state.gpu_models()[m])) continue;
    ++models;
    const auto limit = max_on_path(state, queue, amounts_on(state, spec, m));
    if (!limit) return std::nullopt;
    if (!nearest || Int128{limit->limit} * nearest->asked > Int128{nearest->limit} * limit->asked) nearest = limit;
  }
  if (nearest) nearest->on_each_model = models > 1;
  return nearest;
}

std::string amount_of(const State& state, std::size_t dim, std::int64_t amount) {
  if (dim == kDims) return std::to_string(amount) + (amount == 1 ? " job" : " jobs");
  if (dim == kDimMemory) return document::memory_text(amount) + " of memory";
  if (dim == kDimGpuEquivalent) return document::milli_text(amount / kMilli) + " GPU-equivalents";
  const std::string number = document::milli_text(amount);
  if (dim == kDimCpu) return number + (amount == kMilli ? " CPU" : " CPUs");
  const std::string model =
      dim >= kDimFirstModel ? " of " + state.gpu_models()[dim - kDimFirstModel].name : std::string();
  return number + (amount == kMilli ? " GPU" : " GPUs") + model;
}

}  // namespace

std::optional<ImpossibleLimit> impossible_limit(const State& state, QueueId queue, const JobSpec& spec) {
  const Amounts least = least_of(state, spec);
  for (QueueId id = queue; id.valid(); id = state.queue(id).parent) {
    const QueueState& at = state.queue(id);
    if (auto limit = max_of(at, least)) return limit;
    if (least[kDimGpu] > at.max_gpu_milli_per_user)
      return ImpossibleLimit{id, true, kDimGpu, least[kDimGpu], at.max_gpu_milli_per_user};
    if (at.max_jobs_per_user == 0) return ImpossibleLimit{id, true, kDims, 1, 0};
  }
  for (const TaskGroup& group : spec.groups) {
    if (auto limit = ruled_out_on_each_model(state, queue, spec, group)) return limit;
  }
  return std::nullopt;
}

std::string text_of(const State& state, const ImpossibleLimit& limit) {
  const std::string queue = "queue '" + state.queue(limit.queue).path + "'";
  const std::string most = amount_of(state, limit.dim, limit.limit);
  if (limit.dim == kDims) return queue + " lets a user run no job (max_jobs_per_user 0)";
  const std::string allows = limit.of_user ? " allows a user " + most + " (max_gpus_per_user)" : " has max " + most;
  return queue + allows + ", and the job asks for " + amount_of(state, limit.dim, limit.asked) +
         (limit.on_each_model ? "; no other model that it accepts allows more" : "");
}

}  // namespace berth::state

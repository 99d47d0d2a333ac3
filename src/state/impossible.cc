#include "state/impossible.h"

#include "base/checked.h"
#include "model/document/quantity.h"

namespace berth::state {

namespace {

Amounts least_of(const State& state, const JobSpec& spec) {
  Amounts least;
  for (const TaskGroup& group : spec.groups) {
    const std::int64_t tasks = spec.kind == JobKind::kService ? 1 : group.least();
    const std::int64_t gpus = checked_multiply(tasks, group.request.total_gpu_milli());
    least[kDimGpu] += gpus;
    least[kDimCpu] += checked_multiply(tasks, group.request.cpu_milli);
    least[kDimMemory] = checked_add(least[kDimMemory], checked_multiply(tasks, group.request.memory_mib));
    if (group.request.gpu_models.size() != 1) continue;
    if (const auto model = state.gpu_model_named(group.request.gpu_models.front())) least[dim_of(*model)] += gpus;
  }
  return least;
}

std::string amount_of(const State& state, std::size_t dim, std::int64_t amount) {
  if (dim == kDims) return std::to_string(amount) + (amount == 1 ? " job" : " jobs");
  if (dim == kDimMemory) return document::memory_text(amount) + " of memory";
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
    for (std::size_t dim = 0; dim < kDims; ++dim) {
      if (least[dim] > 0 && at.max[dim] < least[dim]) return ImpossibleLimit{id, false, dim, least[dim], at.max[dim]};
    }
    if (least[kDimGpu] > at.max_gpu_milli_per_user)
      return ImpossibleLimit{id, true, kDimGpu, least[kDimGpu], at.max_gpu_milli_per_user};
    if (at.max_jobs_per_user == 0) return ImpossibleLimit{id, true, kDims, 1, 0};
  }
  return std::nullopt;
}

std::string text_of(const State& state, const ImpossibleLimit& limit) {
  const std::string queue = "queue '" + state.queue(limit.queue).path + "'";
  const std::string most = amount_of(state, limit.dim, limit.limit);
  if (limit.dim == kDims) return queue + " lets a user run no job (max_jobs_per_user 0)";
  const std::string allows = limit.of_user ? " allows a user " + most + " (max_gpus_per_user)" : " has max " + most;
  return queue + allows + ", and the job asks for " + amount_of(state, limit.dim, limit.asked);
}

}  // namespace berth::state

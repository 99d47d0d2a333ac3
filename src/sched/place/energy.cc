#include "sched/place/energy.h"

#include <algorithm>

namespace berth::sched {

namespace {

struct Thrift {
  std::int64_t watts = 0;
  std::int64_t weight_permille = 1000;
  ModelMask model = 0;

  bool known() const { return watts > 0; }
  // Returns true if this model draws less for the same work. Both factors are bounded by validation.
  bool before(const Thrift& other) const {
    if (!known() || !other.known()) return known() && !other.known();
    return watts * other.weight_permille < other.watts * weight_permille;
  }
};

}  // namespace

std::vector<ModelMask> thrifty_models(const state::State& state, const state::JobState& job, ModelMask models) {
  if (!state.config().scheduling.energy) return {};
  ModelMask accepted = 0;
  for (const TaskGroup& group : job.spec.groups) {
    if (group.request.gpus > 0) accepted |= allowed_models(state, group.request);
  }
  std::vector<Thrift> order;
  for (const GpuModelConfig& model : state.config().gpu_models) {
    const auto id = state.gpu_model_named(model.name);
    if (!id) continue;
    const ModelMask mask = ModelMask{1} << id->index();
    if ((mask & models & accepted) == 0) continue;
    order.push_back({model.watts, model.weight_permille, mask});
  }
  std::stable_sort(order.begin(), order.end(), [](const Thrift& a, const Thrift& b) { return a.before(b); });
  std::vector<ModelMask> steps;
  ModelMask step = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i - 1].before(order[i])) steps.push_back(step);
    step |= order[i].model;
  }
  return steps;
}

}  // namespace berth::sched

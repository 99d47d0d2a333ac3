#include "product_placement.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "control/commit.h"
#include "control/handle.h"
#include "control/settle.h"
#include "sched/place.h"

namespace berth::bench {

using sim::placement::Choice;
using sim::placement::Fleet;
using sim::placement::PodShape;

namespace {

constexpr Timestamp kNow{1'000'000};

std::string model_name(std::uint32_t model) { return "model" + std::to_string(model); }

JobSpec spec_of(const PodShape& shape, std::size_t models) {
  JobSpec spec;
  spec.name = "pod";
  spec.queue = "default";
  spec.user = "ann";
  TaskGroup group;
  group.command = {"true"};
  group.request.cpu_milli = shape.cpu_milli;
  group.request.memory_mib = shape.mem_mib;
  group.request.gpus = shape.gpus;
  group.request.gpu_milli = shape.gpus > 0 ? shape.milli : sim::placement::kWholeGpu;
  for (std::uint32_t m = 0; m < models && shape.models != sim::placement::kAnyModel; ++m) {
    if ((shape.models >> m & 1U) != 0) group.request.gpu_models.push_back(model_name(m));
  }
  spec.groups.push_back(std::move(group));
  return spec;
}

}  // namespace

void ProductPlacement::command(const Command& command) {
  control::Batch batch(state_, kNow);
  BERTH_CHECK(control::handle(batch, command).has_value());
  control::settle(batch);
}

void ProductPlacement::start(const Fleet& fleet) {
  std::uint32_t models = 0;
  for (const auto& node : fleet) models = std::max(models, node.model + 1);
  ClusterConfig config = default_cluster_config();
  config.scheduling.score = score_;
  for (std::uint32_t m = 0; m < models; ++m) config.gpu_models.push_back({model_name(m), 1000, 0});
  command(ApplyConfig{config, "bench"});
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    NodeSpec node;
    node.name = "node" + std::to_string(i);
    node.cpu_milli = fleet[i].cpu_left;
    node.memory_mib = fleet[i].mem_left;
    for (std::uint32_t g = 0; g < fleet[i].gpus; ++g) {
      Gpu gpu;
      gpu.uuid = "GPU-" + std::to_string(i) + "-" + std::to_string(g);
      gpu.model = model_name(fleet[i].model);
      node.gpus.push_back(gpu);
    }
    command(RegisterNode{node});
  }
  started_ = true;
}

std::optional<Choice> ProductPlacement::pick(const Fleet& fleet, const PodShape& shape) {
  if (!started_) start(fleet);
  const JobId id = state_.next_job_id();
  command(SubmitJob{spec_of(shape, state_.gpu_models().size()), ""});
  sched::PlaceWork work;
  Reason why;
  auto placements = sched::place(state_, *state_.job(id), sched::kAllModels, work, why);
  if (!placements) {
    command(CancelJob{id, "ann"});
    return std::nullopt;
  }
  Choice choice;
  choice.node = static_cast<std::uint32_t>(placements->front().node.index());
  for (const std::uint8_t gpu : placements->front().gpus) choice.gpus.add(gpu);
  Plan plan;
  plan.decisions.emplace_back(StartDecision{id, std::move(*placements)});
  control::Batch batch(state_, kNow);
  control::commit(batch, plan);
  control::settle(batch);
  return choice;
}

}  // namespace berth::bench

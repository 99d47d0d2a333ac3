#include "sim/simulate/cycle_policy.h"

#include <algorithm>
#include <utility>

#include "sched/cycle.h"
#include "sim/simulate/attained_service.h"
#include "sim/simulate/line_policy.h"

namespace berth::sim {
namespace {

// Takes the first node that fits, in the order of the fleet.
class FirstFit final : public placement::PlacementScore {
 public:
  std::optional<placement::Choice> pick(const placement::Fleet& fleet, const placement::PodShape& shape) override {
    for (std::uint32_t node = 0; node < fleet.size(); ++node) {
      if (placement::fits(fleet[node], shape)) {
        return placement::Choice{node, placement::tightest_gpus(fleet[node], shape)};
      }
    }
    return std::nullopt;
  }
  void on_change(std::uint32_t) override {}
};

class ProductCycle final : public CyclePolicy {
 public:
  void on_record(const EventRecord&) override {}
  Plan run_cycle(state::State& state, Timestamp now) override { return sched::run_cycle(state, now); }
};

Result<std::unique_ptr<placement::PlacementScore>> make_score(const PolicySpec& spec, const PolicyWorld& world) {
  if (spec.score == "FirstFit") return std::unique_ptr<placement::PlacementScore>(std::make_unique<FirstFit>());
  return placement::make_policy(spec.score, {world.view.fleet().size(), world.workload.mix, world.seed});
}

}  // namespace

bool place_gang(const WorkloadJob& job, placement::PlacementScore& score, FleetView& view,
                std::vector<placement::Choice>& choices) {
  choices.clear();
  if (view.idle_gpu_milli() < job.gpu_milli) return false;
  for (std::int32_t worker = 0; worker < job.workers; ++worker) {
    auto choice = score.pick(view.fleet(), job.shape);
    if (!choice) {
      give_back_gang(job, view, choices);
      return false;
    }
    view.take(job.shape, *choice);
    choices.push_back(*choice);
  }
  return true;
}

void give_back_gang(const WorkloadJob& job, FleetView& view, const std::vector<placement::Choice>& choices) {
  for (const auto& choice : choices) view.give_back(job.shape, choice);
}

StartDecision start_decision(JobId id, const WorkloadJob& job, const std::vector<placement::Choice>& choices) {
  StartDecision start{id, {}};
  for (const auto& choice : choices) {
    TaskPlacement placement;
    placement.node = NodeId(choice.node);
    placement.gpu_milli = job.shape.gpus == 0 ? static_cast<std::int32_t>(kMilli) : job.shape.milli;
    placement.gpus.assign(choice.gpus.view().begin(), choice.gpus.view().end());
    std::sort(placement.gpus.begin(), placement.gpus.end());
    placement.cpu_milli = job.shape.cpu_milli;
    placement.memory_mib = job.shape.mem_mib;
    start.placements.push_back(std::move(placement));
  }
  return start;
}

Result<std::unique_ptr<CyclePolicy>> make_cycle_policy(const PolicySpec& spec, const PolicyWorld& world) {
  if (spec.order == PolicyOrder::kBerth) return std::unique_ptr<CyclePolicy>(std::make_unique<ProductCycle>());
  auto score = make_score(spec, world);
  if (!score) return score.error();
  world.view.set_score(score->get());
  if (spec.order == PolicyOrder::kAttainedService) {
    return std::unique_ptr<CyclePolicy>(
        std::make_unique<AttainedService>(world, std::move(*score), spec.thresholds_gpu_s, spec.promote_after_s));
  }
  return std::unique_ptr<CyclePolicy>(std::make_unique<LinePolicy>(world, std::move(*score), spec));
}

}  // namespace berth::sim

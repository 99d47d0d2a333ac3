#include "control/share_guard.h"

#include <algorithm>

#include "state/job_state.h"

namespace berth::control {

namespace {

using state::JobState;
using state::State;

constexpr std::int32_t kWholeGpu = 1000;

bool is_a_share(const TaskPlacement& placement) { return placement.gpu_milli < kWholeGpu && placement.slices == 0; }

bool has_gpu(const TaskPlacement& placement, std::uint8_t gpu) {
  return std::find(placement.gpus.begin(), placement.gpus.end(), gpu) != placement.gpus.end();
}

bool gives_no_shares(const State& state, const std::string& pool) {
  for (const PoolConfig& one : state.config().pools) {
    if (one.name != pool || one.gpu_levels.empty()) continue;
    return std::count(one.gpu_levels.begin(), one.gpu_levels.end(), GpuLevel::kTimeSlice) == 0;
  }
  return false;
}

// Returns what is wrong with the other tasks on this GPU.
std::string find_bad_neighbour(const State& state, const JobState& job, const state::NodeState& node,
                               std::uint8_t gpu) {
  for (const auto& [id, task] : node.tasks) {
    const JobState* other = state.job(id);
    if (other == nullptr || !other->attempt || task >= other->attempt->tasks.size()) continue;
    const TaskPlacement& there = other->attempt->tasks[task].placement;
    if (there.node != node.id || !has_gpu(there, gpu)) continue;
    const std::string name = "job " + std::to_string(id.value());
    if (!is_a_share(there)) return name + " has the GPU whole";
    if (state.queue(other->queue).trust_domain != state.queue(job.queue).trust_domain)
      return name + " is of another trust domain";
  }
  return "";
}

}  // namespace

std::string find_forbidden_share(const State& state, const JobState& job, std::span<const TaskPlacement> placements) {
  for (const TaskPlacement& placement : placements) {
    if (placement.gpus.empty() || !is_a_share(placement)) continue;
    const state::NodeState& node = state.node(placement.node);
    const std::string where = "job " + std::to_string(job.id.value()) + " on " + node.spec.name + ": ";
    if (job.spec.latency_objective_ms > 0) return where + "it has a latency objective";
    if (gives_no_shares(state, node.spec.pool)) return where + "pool " + node.spec.pool + " gives no shares";
    for (const std::uint8_t gpu : placement.gpus) {
      if (std::string bad = find_bad_neighbour(state, job, node, gpu); !bad.empty()) return where + bad;
    }
  }
  return "";
}

}  // namespace berth::control

#pragma once
// What nodes would hold, were they empty, of tasks of several groups.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/node_fit.h"

namespace berth::sched {

inline std::int64_t there_of(const state::ShapeCount& count) { return count.there; }
inline std::int64_t there_of(std::uint32_t count) { return count; }

// Whether the nodes that one of the groups may use have in sum what so many tasks of each ask together: false says that
// they can never be there at once. `shapes` are pairs of a shape and how many nodes are of it.
template <class Shapes>
bool enough_when_empty(std::span<const TaskAsk> asks, const std::vector<std::int32_t>& counts, const Shapes& shapes) {
  std::int64_t gpu_milli = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  for (std::size_t g = 0; g < asks.size(); ++g) {
    const TaskRequest& request = asks[g].group.request;
    gpu_milli += counts[g] * request.total_gpu_milli();
    cpu_milli += counts[g] * request.cpu_milli;
    memory_mib += counts[g] * request.memory_mib;
  }
  for (const auto& [shape, count] : shapes) {
    ModelMask models = 0;
    bool holds_one = false;
    for (std::size_t g = 0; g < asks.size(); ++g) {
      if (counts[g] == 0 || !asks[g].classes[shape.node_class.index()] || slots_when_empty(asks[g], shape) == 0)
        continue;
      holds_one = true;
      models |= asks[g].models;
    }
    if (!holds_one) continue;
    const std::int64_t there = there_of(count);
    cpu_milli -= shape.cpu_milli * there;
    memory_mib -= shape.memory_mib * there;
    for (std::size_t m = 0; m < kMaxGpuModels; ++m) {
      if ((models >> m & 1U) != 0) gpu_milli -= std::int64_t{shape.gpus[m]} * kMilli * there;
    }
  }
  return gpu_milli <= 0 && cpu_milli <= 0 && memory_mib <= 0;
}

}  // namespace berth::sched

#include "sim/placement/fleet.h"

#include "base/check.h"

namespace berth::sim::placement {

std::int64_t FleetNode::idle_milli() const {
  std::int64_t sum = 0;
  for (const auto milli : free_gpus()) sum += milli;
  return sum;
}

std::uint32_t FleetNode::whole_free() const {
  std::uint32_t count = 0;
  for (const auto milli : free_gpus()) count += milli == kWholeGpu ? 1U : 0U;
  return count;
}

bool fits(const FleetNode& node, const PodShape& shape) {
  if (node.cpu_left < shape.cpu_milli || node.mem_left < shape.mem_mib) return false;
  if (shape.gpus == 0) return true;
  if (((shape.models >> node.model) & 1U) == 0) return false;
  std::int32_t missing = shape.gpus;
  for (const auto milli : node.free_gpus()) {
    if (milli >= shape.milli && --missing == 0) return true;
  }
  return false;
}

GpuList tightest_gpus(const FleetNode& node, const PodShape& shape) {
  GpuList list;
  if (shape.is_share()) {
    std::size_t best = kMaxGpusPerNode;
    for (std::size_t gpu = 0; gpu < node.gpus; ++gpu) {
      if (node.free[gpu] >= shape.milli && (best == kMaxGpusPerNode || node.free[gpu] < node.free[best])) best = gpu;
    }
    BERTH_CHECK(best < kMaxGpusPerNode);
    list.add(best);
    return list;
  }
  for (std::size_t gpu = 0; gpu < node.gpus && list.count < shape.gpus; ++gpu) {
    if (node.free[gpu] == kWholeGpu) list.add(gpu);
  }
  BERTH_CHECK(list.count == shape.gpus);
  return list;
}

void place(FleetNode& node, const PodShape& shape, const GpuList& gpus) {
  node.cpu_left -= shape.cpu_milli;
  node.mem_left -= shape.mem_mib;
  BERTH_CHECK(node.cpu_left >= 0 && node.mem_left >= 0);
  for (const auto gpu : gpus.view()) {
    node.free[gpu] -= shape.milli;
    BERTH_CHECK(node.free[gpu] >= 0);
  }
  if (shape.gpus > 0) ++node.running[class_of(shape)];
}

void release(FleetNode& node, const PodShape& shape, const GpuList& gpus) {
  node.cpu_left += shape.cpu_milli;
  node.mem_left += shape.mem_mib;
  for (const auto gpu : gpus.view()) {
    node.free[gpu] += shape.milli;
    BERTH_CHECK(node.free[gpu] <= kWholeGpu);
  }
  if (shape.gpus > 0) {
    BERTH_CHECK(node.running[class_of(shape)] > 0);
    --node.running[class_of(shape)];
  }
}

}  // namespace berth::sim::placement

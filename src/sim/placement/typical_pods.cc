#include "sim/placement/typical_pods.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace berth::sim::placement {
namespace {

bool hosts_ignoring_memory(const FleetNode& node, const PodShape& shape) {
  PodShape without_memory = shape;
  without_memory.mem_mib = 0;
  return shape.gpus > 0 && fits(node, without_memory);
}

std::int64_t unusable_milli(const FleetNode& node, const PodShape& shape) {
  if (!hosts_ignoring_memory(node, shape)) return node.idle_milli();
  std::int64_t sum = 0;
  for (const auto milli : node.free_gpus()) sum += milli < shape.milli ? milli : 0;
  return sum;
}

}  // namespace

std::vector<TypicalPod> typical_pods(std::span<const PodShape> pods) {
  PodCounts counts;
  for (const PodShape& pod : pods) ++counts[pod];
  return typical_pods(counts);
}

std::vector<TypicalPod> typical_pods(const PodCounts& pods) {
  PodCounts counts;
  std::int64_t total = 0;
  for (const auto& [shape, count] : pods) {
    PodShape without_memory = shape;
    without_memory.mem_mib = 0;
    counts[without_memory] += count;
    total += count;
  }
  std::vector<std::pair<PodShape, std::int64_t>> groups(counts.begin(), counts.end());
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    const auto key = [](const auto& group) {
      return std::tuple(group.second, group.first.cpu_milli, group.first.milli, group.first.gpus, group.first.models);
    };
    return key(a) > key(b);
  });

  std::vector<TypicalPod> typical;
  std::int64_t covered = 0;
  for (const auto& [shape, count] : groups) {
    if (covered * 100 >= total * 95) break;
    covered += count;
    typical.push_back({shape, count, 0.0});
  }
  for (auto& pod : typical) pod.share = static_cast<double>(pod.count) / static_cast<double>(covered);
  return typical;
}

double fragmentation(const FleetNode& node, std::span<const TypicalPod> mix) {
  double sum = 0.0;
  for (const auto& pod : mix) sum += pod.share * static_cast<double>(unusable_milli(node, pod.shape));
  return sum;
}

}  // namespace berth::sim::placement

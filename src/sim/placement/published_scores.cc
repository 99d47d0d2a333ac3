#include "sim/placement/published_scores.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace berth::sim::placement {
namespace {

constexpr std::int64_t kMostCpuMilli = 128'000;  // the largest node of the paper's cluster, by which scores are scaled
constexpr std::int64_t kMostGpuMilli = 8'000;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

bool idle(const FleetNode& node) { return node.whole_free() == node.gpus; }

}  // namespace

Scored score_dot_product(const FleetNode& node, const PodShape& shape) {
  const auto part = [](std::int64_t value, std::int64_t most) {
    return static_cast<double>(value) / static_cast<double>(most);
  };
  const double cpu = part(node.cpu_left, kMostCpuMilli) * part(shape.cpu_milli, kMostCpuMilli);
  const double gpu = part(node.idle_milli(), kMostGpuMilli) * part(shape.total_milli(), kMostGpuMilli);
  return {static_cast<std::int32_t>(100.0 * (1.0 - (cpu + gpu) / 2.0)), tightest_gpus(node, shape)};
}

Scored score_gpu_clustering(const FleetNode& node, const PodShape& shape) {
  const auto gpus = tightest_gpus(node, shape);
  if (shape.gpus == 0) return {0, gpus};
  const auto classes = std::count_if(node.running.begin(), node.running.end(), [](auto pods) { return pods > 0; });
  const bool same_class = node.running[class_of(shape)] > 0;
  std::int64_t floor = 0;
  if (same_class)
    floor = classes == 1 ? 75 : 50;
  else if (classes == 0)
    floor = 25;
  return {static_cast<std::int32_t>(floor + 25 * (kMostGpuMilli - node.idle_milli()) / kMostGpuMilli), gpus};
}

Scored score_gpu_packing(const FleetNode& node, const PodShape& shape) {
  const auto gpus = tightest_gpus(node, shape);
  if (shape.gpus == 0) return {0, gpus};
  const auto whole = static_cast<std::int32_t>(node.whole_free());
  if (idle(node)) return {std::max(33 - whole, whole), gpus};
  std::int32_t whole_taken = 0;
  std::int32_t free_percent = 0;
  for (const auto gpu : gpus.view()) {
    whole_taken += node.free[gpu] == kWholeGpu ? 1 : 0;
    free_percent += node.free[gpu] / 10;
  }
  if (whole_taken > 0) return {std::max(50 - whole_taken, 33), gpus};
  return {std::max(100 - free_percent / 10, 50), gpus};
}

Scored score_best_fit(const FleetNode& node, const PodShape& shape) {
  const double cpu = static_cast<double>(node.cpu_left - shape.cpu_milli) / static_cast<double>(kMostCpuMilli);
  const double gpu = static_cast<double>(node.idle_milli() - shape.total_milli()) / static_cast<double>(kMostGpuMilli);
  return {static_cast<std::int32_t>(100.0 * (1.0 - (cpu * 0.5 + gpu * 0.5))), tightest_gpus(node, shape)};
}

FragmentationDescent::FragmentationDescent(std::vector<TypicalPod> mix) : mix_(std::move(mix)) {
  for (const auto& pod : mix_) cpu_steps_.push_back(pod.shape.cpu_milli);
  std::sort(cpu_steps_.begin(), cpu_steps_.end());
  cpu_steps_.erase(std::unique(cpu_steps_.begin(), cpu_steps_.end()), cpu_steps_.end());
}

Scored FragmentationDescent::score(const FleetNode& node, const PodShape& shape) {
  const double before = remembered_fragmentation(node);
  const auto score_on = [&](const GpuList& gpus) {
    FleetNode after = node;
    place(after, shape, gpus);
    return Scored{static_cast<std::int32_t>(100.0 * sigmoid((before - remembered_fragmentation(after)) / 1000.0)),
                  gpus};
  };
  if (!shape.is_share()) return score_on(tightest_gpus(node, shape));

  Scored best{-1, {}};
  for (std::size_t gpu = 0; gpu < node.gpus; ++gpu) {
    if (node.free[gpu] < shape.milli) continue;
    GpuList only;
    only.add(gpu);
    const auto scored = score_on(only);
    if (scored.score > best.score) best = scored;
  }
  return best;
}

double FragmentationDescent::remembered_fragmentation(const FleetNode& node) {
  auto free = node.free;
  std::sort(free.begin(), free.begin() + node.gpus);
  const auto cpu_step = std::upper_bound(cpu_steps_.begin(), cpu_steps_.end(), node.cpu_left) - cpu_steps_.begin();
  std::string key;
  key.reserve(2 * (node.gpus + 2));
  const auto append = [&key](auto value) {
    key += static_cast<char>(value & 0xff);
    key += static_cast<char>(value >> 8);
  };
  append(cpu_step);
  append(node.model);
  for (std::size_t gpu = 0; gpu < node.gpus; ++gpu) append(free[gpu]);
  const auto [entry, inserted] = memo_.try_emplace(std::move(key), 0.0);
  if (inserted) entry->second = placement::fragmentation(node, mix_);
  return entry->second;
}

}  // namespace berth::sim::placement

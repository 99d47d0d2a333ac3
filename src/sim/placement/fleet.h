#pragma once
// The fleet of the published placement experiment (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent", USENIX ATC'23, section 4): what is free on each node, and the shape
// of a pod. GPUs are counted in milli-GPU. A pod takes either a part of one GPU or whole free GPUs of one node; GPU
// memory is not modelled. Nothing here depends on files, virtual time or berth's state, so that the same policies run
// in the product's core and in the bare experiment.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace berth::sim::placement {

inline constexpr std::int32_t kWholeGpu = 1000;
inline constexpr std::size_t kMaxGpusPerNode = 16;

// A set of GPU models, one bit per model index; the fleet's owner chooses the indexes.
using ModelMask = std::uint64_t;
inline constexpr ModelMask kAnyModel = ~ModelMask{0};

struct PodShape {
  std::int64_t cpu_milli = 0;
  std::int64_t mem_mib = 0;
  std::int32_t gpus = 0;         // how many GPUs; 0 for a CPU pod
  std::int32_t milli = 0;        // of each GPU; below kWholeGpu only with one GPU
  ModelMask models = kAnyModel;  // the models allowed

  auto operator<=>(const PodShape&) const = default;

  bool is_share() const { return gpus == 1 && milli < kWholeGpu; }
  std::int64_t total_milli() const { return std::int64_t{gpus} * milli; }
};

// The classes of GpuClustering: 0 for a share, otherwise the number of GPUs. CPU pods have none.
inline constexpr std::size_t kPodClasses = kMaxGpusPerNode + 1;
inline std::size_t class_of(const PodShape& shape) {
  return shape.is_share() ? 0 : static_cast<std::size_t>(shape.gpus);
}

struct FleetNode {
  std::int64_t cpu_left = 0;
  std::int64_t mem_left = 0;
  std::uint32_t model = 0;                           // index into the owner's list of models
  std::uint32_t gpus = 0;                            // how many of `free` exist
  std::array<std::int32_t, kMaxGpusPerNode> free{};  // milli left on each GPU
  std::array<std::uint16_t, kPodClasses> running{};  // GPU pods here, by class

  std::span<const std::int32_t> free_gpus() const { return {free.data(), gpus}; }
  std::int64_t idle_milli() const;
  std::uint32_t whole_free() const;
};

// Which GPUs of a node a pod gets.
struct GpuList {
  std::array<std::uint8_t, kMaxGpusPerNode> index{};
  std::uint8_t count = 0;

  void add(std::size_t gpu) { index[count++] = static_cast<std::uint8_t>(gpu); }
  std::span<const std::uint8_t> view() const { return {index.data(), count}; }
  bool operator==(const GpuList&) const = default;
};

struct Choice {
  std::uint32_t node = 0;
  GpuList gpus;
  bool operator==(const Choice&) const = default;
};

using Fleet = std::vector<FleetNode>;

// Returns true if CPU, memory and model suffice, and there is room for the share on one GPU or enough completely free
// GPUs.
bool fits(const FleetNode& node, const PodShape& shape);

// Returns the fitting GPUs with the least free, the first at a tie. Requires: fits(node, shape).
GpuList tightest_gpus(const FleetNode& node, const PodShape& shape);

// Requires for `place`: the shape fits on these GPUs. `release` undoes it.
void place(FleetNode& node, const PodShape& shape, const GpuList& gpus);
void release(FleetNode& node, const PodShape& shape, const GpuList& gpus);

}  // namespace berth::sim::placement

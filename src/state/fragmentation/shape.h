#pragma once
// What fragmentation is about: what is free on a node, and what a request takes of it. Plain integers, with no tie to
// the state, so that the scheduling core, the simulator and tests can all ask. Free GPUs are kept in ascending order:
// nodes that differ only in the order of their GPUs are one and the same here. Memory is left to the filter, as in the
// FGD paper (Weng et al., USENIX ATC'23): it has never bound in the traces, and without it more nodes look alike.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "base/fields.h"

namespace berth::state::fragmentation {

inline constexpr std::int32_t kWholeGpu = 1000;
inline constexpr std::size_t kMaxGpusPerNode = 16;

using ModelMask = std::uint64_t;  // one bit per GPU model
inline constexpr ModelMask kAnyModel = ~ModelMask{0};

struct Request {
  std::int64_t cpu_milli = 0;
  std::int32_t gpus = 0;         // 0: wants no GPU
  std::int32_t milli = 0;        // of each GPU; below kWholeGpu only with one GPU
  ModelMask models = kAnyModel;  // the models allowed

  auto operator<=>(const Request&) const = default;
  bool is_share() const { return gpus == 1 && milli < kWholeGpu; }
  std::int64_t total_milli() const { return std::int64_t{gpus} * milli; }
  static constexpr auto fields() {
    return field_list(field("cpu_milli", &Request::cpu_milli), field("gpus", &Request::gpus),
                      field("milli", &Request::milli), field("models", &Request::models));
  }
};

struct NodeFree {
  std::int64_t cpu_milli = 0;
  std::uint32_t model = 0;
  std::uint32_t gpus = 0;
  std::array<std::int32_t, kMaxGpusPerNode> free{};  // milli left on each GPU, ascending; 0 beyond `gpus`
  std::int64_t cpu_unit = 1;  // CPU is counted in whole ones of these, so that more nodes look alike

  auto operator<=>(const NodeFree&) const = default;
  std::span<const std::int32_t> free_gpus() const { return {free.data(), gpus}; }
  std::int64_t idle_milli() const;
  std::int32_t whole_free() const;
};

// Puts the free GPUs in ascending order.
NodeFree canonical(NodeFree node);

// How many times the request, and nothing else, could still be put on the node.
std::int64_t slots(const NodeFree& node, const Request& request);

// The node after the request; `gpu_free` is the free milli of the GPU that a share is put on, and of no meaning
// otherwise. `cpu_rest` is what the node has beyond whole units of CPU. Precondition: it fits there.
NodeFree after(const NodeFree& node, const Request& request, std::int32_t gpu_free, std::int64_t cpu_rest = 0);

}  // namespace berth::state::fragmentation

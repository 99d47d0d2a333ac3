#pragma once
// What the fragmentation score works on: what is free on a node, and what a request takes from it. Plain integers
// without the state, so that the scheduler, the simulator and tests can use them. Free GPUs are in ascending order, so
// that nodes that differ only in the order of their GPUs are equal. Memory is left out, as in the FGD paper (Weng et
// al., USENIX ATC'23): it was never the limit in the traces, and without it more nodes are equal.

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

using ModelMask = std::uint64_t;
inline constexpr ModelMask kAnyModel = ~ModelMask{0};

struct Request {
  std::int64_t cpu_milli = 0;
  std::int32_t gpus = 0;         // 0: no GPU
  std::int32_t milli = 0;        // of each GPU; below kWholeGpu only for a share of one GPU
  ModelMask models = kAnyModel;  // allowed GPU models, one bit each

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
  std::array<std::int32_t, kMaxGpusPerNode> free{};  // free milli of each GPU, ascending; 0 beyond `gpus`
  std::int64_t cpu_unit = 1;  // CPU counts in whole units of this size, so that more nodes are equal

  auto operator<=>(const NodeFree&) const = default;
  std::span<const std::int32_t> free_gpus() const { return {free.data(), gpus}; }
  std::int64_t idle_milli() const;
  std::int32_t whole_free() const;
};

// Returns the node with its free GPUs in ascending order.
NodeFree canonical(NodeFree node);

// Returns how many times the request alone fits on the node.
std::int64_t slots(const NodeFree& node, const Request& request);

// Returns the node after the request is placed. `gpu_free` is the free milli of the GPU that a share uses; it is
// ignored for whole GPUs. `cpu_rest` is the CPU that the node has beyond whole units. Requires that the request fits.
NodeFree after(const NodeFree& node, const Request& request, std::int32_t gpu_free, std::int64_t cpu_rest = 0);

}  // namespace berth::state::fragmentation

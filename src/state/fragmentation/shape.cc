#include "state/fragmentation/shape.h"

#include <algorithm>

#include "base/check.h"

namespace berth::state::fragmentation {

std::int64_t NodeFree::idle_milli() const {
  std::int64_t sum = 0;
  for (const auto milli : free_gpus()) sum += milli;
  return sum;
}

std::int32_t NodeFree::whole_free() const {
  std::int32_t count = 0;
  for (const auto milli : free_gpus()) count += milli == kWholeGpu ? 1 : 0;
  return count;
}

NodeFree canonical(NodeFree node) {
  std::sort(node.free.begin(), node.free.begin() + node.gpus);
  return node;
}

std::int64_t slots(const NodeFree& node, const Request& request) {
  constexpr std::int64_t kUnbounded = 1'000'000;
  const std::int64_t by_cpu = request.cpu_milli > 0 ? node.cpu_milli / request.cpu_milli : kUnbounded;
  if (request.gpus == 0) return by_cpu;
  if (((request.models >> node.model) & 1U) == 0) return 0;
  std::int64_t by_gpu = 0;
  if (request.is_share()) {
    for (const auto milli : node.free_gpus()) by_gpu += milli / request.milli;
  } else {
    by_gpu = node.whole_free() / request.gpus;
  }
  return std::min(by_cpu, by_gpu);
}

NodeFree after(const NodeFree& node, const Request& request, std::int32_t gpu_free, std::int64_t cpu_rest) {
  NodeFree rest = node;
  rest.cpu_milli += cpu_rest - request.cpu_milli;
  BERTH_CHECK(rest.cpu_milli >= 0);
  rest.cpu_milli -= rest.cpu_milli % rest.cpu_unit;
  const std::int32_t taken_from = request.is_share() ? gpu_free : kWholeGpu;
  std::int32_t missing = request.gpus;
  for (std::size_t gpu = 0; gpu < rest.gpus && missing > 0; ++gpu) {
    if (rest.free[gpu] != taken_from) continue;
    rest.free[gpu] -= request.milli;
    --missing;
  }
  BERTH_CHECK(missing == 0);
  return canonical(rest);
}

}  // namespace berth::state::fragmentation

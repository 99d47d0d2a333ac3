#include "sim/trace/trace.h"

#include "base/checked.h"

namespace berth::sim {

std::int64_t fleet_gpu_milli(const Trace& trace) {
  std::int64_t sum = 0;
  for (const TraceNode& node : trace.nodes) sum = checked_add(sum, checked_multiply(node.gpus, 1000));
  return sum;
}

}  // namespace berth::sim

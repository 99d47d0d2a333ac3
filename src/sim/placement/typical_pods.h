#pragma once
// The mix of requests that the paper measures fragmentation against (ATC'23, section 4.1): the most frequent groups of
// pods that together make up 95 % of a list, and F, the GPU-milli that such a mix is expected not to be able to use.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/placement/fleet.h"

namespace berth::sim::placement {

struct TypicalPod {
  PodShape shape;          // mem_mib is 0: the paper ignores memory here
  std::int64_t count = 0;  // pods of the list
  double share = 0.0;      // of all typical pods; they add up to 1
};

// Groups `pods` by (CPU, milli, GPUs, models), most frequent first (ties: larger CPU, milli, count and models first),
// and keeps as few groups as reach 95 % of the pods.
std::vector<TypicalPod> typical_pods(std::span<const PodShape> pods);
// The same of how many pods there are of each shape.
using PodCounts = std::map<PodShape, std::int64_t>;
std::vector<TypicalPod> typical_pods(const PodCounts& pods);

// F(n): the expected milli of the node's idle GPUs that a typical pod cannot use. All idle milli where the pod cannot
// run at all (or wants no GPU), otherwise the idle milli of GPUs with less free than the pod wants of each.
double fragmentation(const FleetNode& node, std::span<const TypicalPod> mix);

}  // namespace berth::sim::placement

#pragma once
// The mix of requests against which the paper measures fragmentation (ATC'23, section 4.1): the most frequent groups of
// pods that together are 95 % of a list. And F, the milli-GPUs that such a mix is expected not to be able to use.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/placement/fleet.h"

namespace berth::sim::placement {

struct TypicalPod {
  PodShape shape;          // mem_mib is 0: the paper ignores memory here
  std::int64_t count = 0;  // pods of the list
  double share = 0.0;      // part of all typical pods; the sum is 1
};

// Groups `pods` by (CPU, milli, GPUs, models), most frequent first (ties: larger CPU, milli, count and models first),
// and keeps as few groups as reach 95 % of the pods.
std::vector<TypicalPod> typical_pods(std::span<const PodShape> pods);
// As above, from the number of pods of each shape.
using PodCounts = std::map<PodShape, std::int64_t>;
std::vector<TypicalPod> typical_pods(const PodCounts& pods);

// Returns F(n): the expected milli of the node's idle GPUs that a typical pod cannot use. If the pod cannot run there
// at all, or requests no GPU, that is all idle milli. Otherwise it is the idle milli of GPUs with less free than the
// pod requests of each.
double fragmentation(const FleetNode& node, std::span<const TypicalPod> mix);

}  // namespace berth::sim::placement

#pragma once
// One pure function per published policy: the score of putting a pod on a node where it fits, and the GPUs it would
// get.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/placement/fleet.h"
#include "sim/placement/typical_pods.h"

namespace berth::sim::placement {

struct Scored {
  std::int32_t score = 0;
  GpuList gpus;
};

// The dot product of Tetris: what is free times what is requested. The smallest wins, which keeps large nodes for large
// pods.
Scored score_dot_product(const FleetNode& node, const PodShape& shape);
// Keeps pods of one class (share, one GPU, two GPUs, ...) together.
Scored score_gpu_clustering(const FleetNode& node, const PodShape& shape);
// Shared GPUs before free GPUs of used nodes before idle nodes.
Scored score_gpu_packing(const FleetNode& node, const PodShape& shape);
// The node with the least left wins; the caller normalises over the feasible nodes.
Scored score_best_fit(const FleetNode& node, const PodShape& shape);

// Fragmentation Gradient Descent (ATC'23, algorithm 1): the steepest descent of F. Values of F are cached by what they
// depend on: the model, the free milli-GPUs in ascending order, and how many of the distinct CPU requests of the mix
// the node can still meet.
class FragmentationDescent {
 public:
  explicit FragmentationDescent(std::vector<TypicalPod> mix);
  Scored score(const FleetNode& node, const PodShape& shape);

 private:
  double remembered_fragmentation(const FleetNode& node);

  std::vector<TypicalPod> mix_;
  std::vector<std::int64_t> cpu_steps_;  // the distinct CPU requests of the mix, ascending
  std::unordered_map<std::string, double> memo_;
};

}  // namespace berth::sim::placement

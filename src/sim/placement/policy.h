#pragma once
// The published placement policies, as their authors' simulator computes them: integer scores, and the highest wins.
// Ties go to the first node of an order that is random but fixed for the run. They are part of the simulator, for
// comparison only. berth's own score is in state/fragmentation.
//
//   auto policy = make_policy("FGD", {.nodes = fleet.size(), .mix = typical_pods(list), .seed = 42});
//   if (auto choice = policy->pick(fleet, shape)) { place(fleet[choice->node], shape, choice->gpus);
//                                                   policy->on_change(choice->node); }

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/placement/fleet.h"
#include "sim/placement/typical_pods.h"

namespace berth::sim::placement {

// Contract:
// 1. `pick` returns a node and GPUs on which the shape fits, or nothing if it fits nowhere. It changes no node.
// 2. The fleet is the same in every call, with the number of nodes given at the start.
// 3. The caller calls `on_change` for each node that it changes, before the next `pick`. Scores of other nodes are
//    remembered.
class PlacementScore {
 public:
  PlacementScore() = default;
  PlacementScore(const PlacementScore&) = delete;
  PlacementScore& operator=(const PlacementScore&) = delete;
  virtual ~PlacementScore() = default;

  virtual std::optional<Choice> pick(const Fleet& fleet, const PodShape& shape) = 0;
  virtual void on_change(std::uint32_t node) = 0;
};

struct PolicySetup {
  std::size_t nodes = 0;
  std::vector<TypicalPod> mix;  // used by FGD and berth
  std::uint64_t seed = 0;       // the order of the nodes, and Random's choices
};

// Names: Random, DotProd, GpuClustering, GpuPacking, BestFit, FGD; berth (knowing the mix, as FGD does) and
// berth-learned (learning it from what has arrived).
Result<std::unique_ptr<PlacementScore>> make_policy(std::string_view name, const PolicySetup& setup);
std::vector<std::string_view> policy_names();

}  // namespace berth::sim::placement

#include "sched/place/node_sampling.h"

#include <string>
#include <vector>

#include "support/fleet_fixture.h"

namespace berth {
namespace {

struct ScoredFleet : FleetFixture {
  ScoredFleet() { command(ApplyConfig{config({queue("a")}), "op"}); }

  // Adds so many nodes of the model, no two alike.
  void add_nodes(const std::string& model, std::int32_t count) {
    for (std::int32_t gpus = 1; gpus <= count; ++gpus)
      command(RegisterNode{FleetFixture::node(model + std::to_string(gpus), gpus, model)});
  }

  struct Found {
    std::size_t nodes = 0;
    std::uint64_t looked_at = 0;  // groups and nodes
  };
  Found for_one_gpu(const std::vector<std::string>& models) {
    JobSpec spec = FleetFixture::job("a", 1, 1);
    spec.groups[0].request.gpu_models = models;
    const state::JobState& asking = *state.job(submit(spec));
    const sched::TaskRequirements ask = sched::task_requirements(state, asking, 0, sched::kAllModels);
    Found found;
    found.nodes = sched::nodes_to_score(state, ask, {}, found.looked_at).size();
    return found;
  }
};

TEST_CASE("a few nodes are looked at once, not from both ends") {
  ScoredFleet fleet;
  fleet.add_nodes("H100", 5);
  const ScoredFleet::Found found = fleet.for_one_gpu({});
  CHECK_EQ(found.nodes, 5);
  CHECK_EQ(found.looked_at, 2 * 5);
}

TEST_CASE("groups of GPU models that a task may not use are not looked at to score it") {
  ScoredFleet fleet;
  fleet.add_nodes("H100", 5);
  fleet.add_nodes("A100", 16);
  const ScoredFleet::Found found = fleet.for_one_gpu({"H100"});
  CHECK_EQ(found.nodes, 5);
  CHECK_EQ(found.looked_at, 2 * 5);
}

TEST_CASE("a GPU model of which enough nodes were found is not looked at while others are") {
  ScoredFleet fleet;
  fleet.add_nodes("H100", 16);
  fleet.add_nodes("A100", 5);
  const ScoredFleet::Found found = fleet.for_one_gpu({});
  CHECK_EQ(found.nodes, 16 + 5);  // both ends of the first model meet
  CHECK_EQ(found.looked_at, 2 * (2 * sched::kScoredAtEachEnd + 5));
}

}  // namespace
}  // namespace berth

#include "sched/place/node_iterator.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "sched/place/place.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

JobSpec share_of(std::int32_t milli, const std::vector<std::string>& models = {}) {
  JobSpec spec = FleetFixture::job("a", 1, 1);
  spec.groups[0].request.gpu_milli = milli;
  spec.groups[0].request.gpu_models = models;
  return spec;
}

JobSpec whole(std::int32_t gpus, const std::vector<std::string>& models = {}) {
  JobSpec spec = FleetFixture::job("a", 1, gpus);
  spec.groups[0].request.gpu_models = models;
  return spec;
}

struct OneQueueFleet : FleetFixture {
  OneQueueFleet() {
    ClusterConfig one = config({queue("a")});
    one.scheduling.score = NodeScore::kBestFit;  // nodes come from the iterator only by best fit
    command(ApplyConfig{one, "op"});
  }

  void run(const JobSpec& spec) {
    const JobId id = submit(spec);
    cycle();
    REQUIRE(runs(id));
  }
  std::uint64_t scored_for(const JobSpec& spec) {
    const JobId id = submit(spec);
    sched::SearchStats work;
    CHECK(sched::place(state, *state.job(id), sched::kAllModels, work));
    return work.nodes_scored;
  }
};

TEST_CASE("groups of GPU models that a task may not use are not looked at") {
  OneQueueFleet fleet;
  for (std::int32_t gpus = 1; gpus <= 8; ++gpus)
    fleet.command(RegisterNode{FleetFixture::node("a" + std::to_string(gpus), gpus, "A100")});
  fleet.command(RegisterNode{FleetFixture::node("h", 8, "H100")});
  CHECK_EQ(fleet.scored_for(whole(1, {"H100"})), 2);  // the group and its node
  CHECK_EQ(fleet.scored_for(share_of(500, {"H100"})), 2);
}

TEST_CASE("groups whose GPUs are free only in pieces too small are not looked at") {
  OneQueueFleet fleet;
  for (std::int32_t node = 1; node <= 8; ++node) {  // 0.3 left on every GPU
    fleet.command(RegisterNode{FleetFixture::node("n" + std::to_string(node), node)});
    for (std::int32_t gpu = 0; gpu < node; ++gpu) fleet.run(share_of(700));
  }
  fleet.command(RegisterNode{FleetFixture::node("free", 8)});
  CHECK_EQ(fleet.scored_for(share_of(500)), 2);
  CHECK_EQ(fleet.scored_for(share_of(200)), 2);  // the tightest that has it
}

TEST_CASE("lists of more than is needed are not looked into when a tighter node is known") {
  OneQueueFleet fleet;
  for (std::int32_t gpus = 1; gpus <= 8; ++gpus)
    fleet.command(RegisterNode{FleetFixture::node("n" + std::to_string(gpus), gpus)});
  CHECK_EQ(fleet.scored_for(whole(3)), 2);
}

// Returns what FitOrder must give, from a look at all nodes.
std::vector<NodeId> fitting_nodes(const state::State& state, const sched::TaskRequirements& ask) {
  std::vector<std::tuple<std::int64_t, std::int64_t, NodeId>> fitting;
  for (const state::NodeState& node : state.nodes()) {
    std::int64_t milli = 0;
    for (const state::GpuSlot& gpu : node.gpus) milli += gpu.available_milli();
    if (sched::try_node(ask, node, {})) fitting.emplace_back(milli, node.available_cpu_milli(), node.id);
  }
  std::sort(fitting.begin(), fitting.end());
  std::vector<NodeId> nodes;
  for (const auto& one : fitting) nodes.push_back(std::get<NodeId>(one));
  return nodes;
}

// has_place must agree with try_node.
void check_places(const state::State& state, const sched::TaskRequirements& ask) {
  for (const state::NodeState& node : state.nodes())
    CHECK_EQ(sched::has_place(ask, node, {}), sched::try_node(ask, node, {}).has_value());
}

TEST_CASE("all nodes that fit are given, the tightest first, whatever GPUs they mix") {
  Random random(7);
  OneQueueFleet fleet;
  for (int n = 0; n < 60; ++n) {
    NodeSpec node = FleetFixture::node("n" + std::to_string(n), static_cast<std::int32_t>(random.below(9)));
    for (Gpu& gpu : node.gpus) gpu.model = n % 3 == 0 || (n % 3 == 1 && random.chance(500)) ? "H100" : "A100";
    node.cpu_milli = random.between(4, 64) * 1000;
    fleet.command(RegisterNode{node});
  }
  const std::vector<std::vector<std::string>> models = {{}, {"H100"}, {"A100"}};
  const auto some_job = [&] {
    JobSpec spec = random.chance(500) ? share_of(static_cast<std::int32_t>(random.between(1, 20)) * 50 - 1)
                                      : whole(static_cast<std::int32_t>(random.below(6)));
    spec.groups[0].request.gpu_models =
        spec.groups[0].request.gpus > 0 ? random.pick(models) : std::vector<std::string>();
    spec.groups[0].request.cpu_milli = random.between(1, 8) * 1000;
    return spec;
  };
  for (int j = 0; j < 200; ++j) {
    const state::JobState& job = *fleet.state.job(fleet.submit(some_job()));
    check_places(fleet.state, sched::task_requirements(fleet.state, job, 0, sched::kAllModels));
  }
  fleet.cycle();
  for (int j = 0; j < 200; ++j) {
    const state::JobState& job = *fleet.state.job(fleet.submit(some_job()));
    const sched::TaskRequirements ask = sched::task_requirements(fleet.state, job, 0, sched::kAllModels);
    std::uint64_t scored = 0;
    sched::FitOrder order(fleet.state, ask, scored);
    std::vector<NodeId> given;
    while (const auto node = order.next()) given.push_back(*node);
    CHECK(given == fitting_nodes(fleet.state, ask));
    check_places(fleet.state, ask);
  }
}

}  // namespace
}  // namespace berth

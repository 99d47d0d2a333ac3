// Random fleets: placement and the node index.

#include "support/random_fleet.h"

#include <doctest/doctest.h>

#include "sched/place/place.h"
#include "state/transaction.h"
#include "support/linear_search.h"

namespace berth {
namespace {

using state::JobState;
using state::NodeState;
using state::State;

// Sums what is available on all nodes, the slow way.
std::int64_t available_on(const State& state) {
  std::int64_t milli = 0;
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks()) continue;
    for (const state::GpuSlot& gpu : node.gpus) milli += gpu.available_milli();
  }
  return milli;
}

}  // namespace

TEST_CASE("the index places every job where a scan of all nodes would") {
  std::size_t placed = 0;
  std::size_t refused = 0;
  for_each_step({.first = 1, .end = 41, .steps = 25, .arrivals = 6}, [&](Fleet& fleet) {
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      if (job.nomination) continue;
      const sched::ModelMask models = fleet.random.chance(800) ? sched::kAllModels : 0b011U;
      sched::SearchStats work;
      const auto fast = sched::place(fleet.state, job, models, work).placements;
      const auto slow = sched::place_slow(fleet.state, job, models);
      CAPTURE(id.value());
      if (fast && !slow && job.spec.groups.size() > 1) continue;  // found exhaustively; exact_property_test judges it
      REQUIRE_EQ(fast.has_value(), slow.has_value());
      if (fast) {
        REQUIRE(*fast == *slow);
        ++placed;
      } else {
        ++refused;
      }
      fleet.command(CancelJob{id, "ann"});
    }
  });
  CHECK_GT(placed, 500);
  CHECK_GT(refused, 500);
}

TEST_CASE("the node index kept up by events and trials equals one built from scratch") {
  for_each_step({.first = 100, .end = 130, .steps = 30}, [&](Fleet& fleet) {
    REQUIRE_EQ(fleet.state.audit().value_or(""), "");
    state::Transaction transaction(fleet.state);
    for (const JobId id : fleet.state.running()) {
      if (fleet.random.chance(300)) transaction.remove(id);
    }
    std::int64_t indexed = 0;
    const auto& index = fleet.state.node_index();
    for (std::size_t c = 0; c < index.classes().size(); ++c) {
      for (std::size_t m = 0; m < kModels.size(); ++m) {
        indexed += index.available_milli(state::NodeClassId(static_cast<std::uint16_t>(c)),
                                         GpuModelId(static_cast<std::uint16_t>(m)));
      }
    }
    REQUIRE_EQ(indexed, available_on(fleet.state));
    transaction.rollback_to(0);
    REQUIRE_EQ(fleet.state.audit().value_or(""), "");
  });
}

TEST_CASE("a gang of whole nodes costs steps per node, not scans per task") {
  Fleet fleet(7);
  NodeSpec node;
  node.pool = "p";
  node.cpu_milli = 64'000;
  node.memory_mib = 512 * 1024;
  for (int g = 0; g < 8; ++g) {
    Gpu gpu;
    gpu.model = "A";
    node.gpus.push_back(gpu);
  }
  for (int n = 0; n < 256; ++n) {
    node.name = "big" + std::to_string(n);
    for (std::size_t g = 0; g < 8; ++g) node.gpus[g].uuid = node.name + "-" + std::to_string(g);
    fleet.command(RegisterNode{node});
  }
  JobSpec spec = fleet.random_spec();
  spec.queue = "a/t0";
  spec.exclusive = spec.spread = false;
  spec.groups.resize(1);
  spec.groups[0] = {};
  spec.groups[0].count = 64;
  spec.groups[0].request.gpus = 8;
  spec.groups[0].command = {"true"};
  const JobId id = fleet.command(SubmitJob{spec, ""})->job;
  sched::SearchStats work;
  const auto placed = sched::try_place(fleet.state, *fleet.state.job(id), sched::kAllModels, work);
  REQUIRE(placed.has_value());
  CHECK_EQ(placed->size(), 64);
  CHECK_LT(work.nodes_scored, 64 * 8);
}

}  // namespace berth

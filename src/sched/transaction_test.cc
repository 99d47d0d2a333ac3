#include "state/transaction.h"

#include "support/fleet_fixture.h"

namespace berth {

TEST_CASE_FIXTURE(FleetFixture, "what a trial changes of limits and nodes is taken back in reverse order") {
  command(ApplyConfig{config({queue("a"), queue("b")}), "op"});
  command(RegisterNode{node("n1", 8)});
  command(CordonNode{"n1", true, false, "op"});
  const QueueId a = state.queue_at("a")->id;
  {
    state::Transaction transaction(state);
    transaction.set_max(a, kDimGpu, 4000);
    const auto mark = transaction.mark();
    transaction.set_max(a, kDimGpu, 8000);
    transaction.set_lending_limit(a, kDimGpu, 2000);
    transaction.uncordon(NodeId(0));
    CHECK_EQ(state.queue(a).max[kDimGpu], 8000);
    CHECK_EQ(state.queue(a).lending_limit[kDimGpu], 2000);
    CHECK(state.node(NodeId(0)).takes_tasks());
    transaction.rollback_to(mark);
    CHECK_EQ(state.queue(a).max[kDimGpu], 4000);
    CHECK_FALSE(state.node(NodeId(0)).takes_tasks());
  }
  CHECK_EQ(state.queue(a).max[kDimGpu], kUnlimited);
  CHECK_EQ(state.queue(a).lending_limit[kDimGpu], kUnlimited);
  CHECK_EQ(state.audit().value_or(""), "");
}

TEST_CASE_FIXTURE(FleetFixture, "a node that is there for a trial is one like others, and leaves nothing behind") {
  ClusterConfig with_racks = config({queue("a")});
  with_racks.topology_levels = {"rack"};
  command(ApplyConfig{with_racks, "op"});
  NodeSpec spec = node("n1", 8);
  spec.topology = {"r1"};
  command(RegisterNode{spec});
  submit(job("a", 1, 8));
  cycle();
  const JobId waits = submit(job("a", 2, 8));
  CHECK_EQ(state.fragmentation().idle_milli(), 0);
  const std::uint64_t before = state.digest();
  {
    state::Transaction transaction(state);
    transaction.add_node(spec);
    transaction.add_node(spec);
    CHECK_EQ(state.capacity()[kDimGpu], 24'000);
    CHECK_EQ(state.fragmentation().idle_milli(), 16'000);
    CHECK_EQ(state.topology().domain(state.topology().at_level(0)[0]).nodes.size(), 3U);
    CHECK_EQ(state.nodes_in(NodeStatus::kReady), 3U);
    TaskPlacement place{.node = NodeId(2), .group = 0, .gpu_milli = 1000, .gpus = {0, 1, 2, 3, 4, 5, 6, 7}};
    transaction.place(waits, {&place, 1});
    CHECK_EQ(state.fragmentation().idle_milli(), 8000);
  }
  CHECK_EQ(state.digest(), before);
  CHECK_EQ(state.capacity()[kDimGpu], 8000);
  CHECK_EQ(state.fragmentation().idle_milli(), 0);
  CHECK_EQ(state.topology().domain(state.topology().at_level(0)[0]).nodes.size(), 1U);
  CHECK_EQ(state.nodes_in(NodeStatus::kReady), 1U);
  CHECK_EQ(state.audit().value_or(""), "");
  command(RegisterNode{node("n2", 8)});
  CHECK_EQ(state.audit().value_or(""), "");
}

TEST_CASE_FIXTURE(FleetFixture, "a trial shows searches who would run and who would go on, and takes it back") {
  QueueConfig owner = queue("b");
  owner.guaranteed.gpu_milli = 1000;
  command(ApplyConfig{config({queue("a"), owner}), "op"});
  command(RegisterNode{node("n1", 1)});
  const JobId victim = submit(job("a", 1, 1));
  cycle();
  const JobId preemptor = submit(job("b", 1, 1));
  cycle();
  REQUIRE(state.job(preemptor)->nomination.has_value());
  REQUIRE(state.job(victim)->phase == JobPhase::kStopping);
  command(RegisterNode{node("n2", 1)});
  auto places = state.job(preemptor)->nomination->placements;
  places.front().node = NodeId(1);
  const QueueId b = state.job(preemptor)->queue;
  const std::uint64_t before = state.digest();
  {
    state::Transaction transaction(state);
    transaction.lift_nomination(preemptor);
    transaction.cancel_eviction(victim);
    CHECK_FALSE(state.running_table().rows()[state.job(victim)->running_row].stopping);
    const auto mark = transaction.mark();
    transaction.start(preemptor, places);
    CHECK_EQ(nodes_of(preemptor), "n2");
    CHECK_EQ(state.running_table().rows().size(), 2U);
    CHECK_EQ(state.queue(b).running.size(), 1U);
    transaction.remove(preemptor);
    CHECK_EQ(state.node(NodeId(1)).gpus.front().free_milli, kMilli);
    transaction.rollback_to(mark);
    CHECK_FALSE(runs(preemptor));
    CHECK(state.queue(b).running.empty());
    CHECK_EQ(state.running_table().rows().size(), 1U);
  }
  CHECK(state.job(victim)->phase == JobPhase::kStopping);
  CHECK_EQ(state.digest(), before);
  CHECK_EQ(state.audit().value_or(""), "");
}

}  // namespace berth

#include "control/node_identity.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "control/effects.h"
#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

NodeSpec node_of(HandDrivenFleet& fleet, const std::string& name, const std::string& machine) {
  NodeSpec spec = fleet.node(name);
  spec.machine = machine;
  for (std::size_t g = 0; g < spec.gpus.size(); ++g) spec.gpus[g].uuid = machine + "-" + std::to_string(g);
  return spec;
}

std::string refusal(HandDrivenFleet& fleet, const NodeSpec& spec) {
  const auto reply = fleet.try_command(RegisterNode{spec});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::kConflict);
  return reply.error().message;
}

std::int64_t gpus_of(const state::State& state) { return state.capacity()[kDimGpu] / kMilli; }

TEST_CASE("a machine that registers under another name renames its node, and its tasks go on") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{node_of(fleet, "old", "m1")});
  const JobId job = fleet.start(HandDrivenFleet::job("a", 2), "old", 0);
  Batch batch(fleet.state, fleet.now);
  REQUIRE(handle(batch, RegisterNode{node_of(fleet, "new", "m1")}));
  const auto records = batch.take_records();
  CHECK(std::get<NodeRegistered>(records.front().event).renamed_from == "old");
  CHECK(fleet.state.nodes().size() == 1);
  CHECK(gpus_of(fleet.state) == 8);
  CHECK(fleet.state.node_named("old") == nullptr);
  CHECK(fleet.state.node_named("new")->tasks.size() == 1);
  CHECK(fleet.state.job(job)->attempt.has_value());
  const auto effects = effects_of(fleet.state, records);
  REQUIRE(effects.size() == 1);
  CHECK(std::get<StartTask>(effects.front()).node == "new");
  fleet.exit(job);
  CHECK(fleet.state.job(job) == nullptr);
}

TEST_CASE("a GPU is on one node: a node with a GPU of another one is refused until that one is lost") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{node_of(fleet, "one", "m1")});
  NodeSpec two = node_of(fleet, "two", "m2");
  two.gpus.back().uuid = "m1-3";
  CHECK(
      refusal(fleet, two) ==
      "node 'two' has GPU m1-3, and so has node 'one', which is ready: take the GPU out of one of them, or shut 'one' "
      "down and fence it");
  fleet.command(ReportNodeStatus{"one", NodeStatus::kUnknown, "no contact"});
  CHECK(refusal(fleet, two) ==
        "node 'two' has GPU m1-3, and so has node 'one', which is unknown: if 'one' is off for good, fence it (berth "
        "fence one --yes)");
  fleet.command(FenceNode{"one", "op"});
  fleet.command(RegisterNode{two});
  CHECK(gpus_of(fleet.state) == 8);
  // The machine that is back must not bring the GPU again.
  CHECK(refusal(fleet, node_of(fleet, "one", "m1")).find("and so has node 'two'") != std::string::npos);
  NodeSpec without = node_of(fleet, "one", "m1");
  without.gpus.erase(without.gpus.begin() + 3);
  fleet.command(RegisterNode{without});
  CHECK(gpus_of(fleet.state) == 15);
}

TEST_CASE("two machines cannot have one name") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{node_of(fleet, "one", "m1")});
  fleet.command(RegisterNode{node_of(fleet, "two", "m2")});
  CHECK(refusal(fleet, node_of(fleet, "one", "m3")).starts_with("another machine has the name of node 'one'"));
  CHECK(refusal(fleet, node_of(fleet, "one", "m2")).starts_with("another machine has the name of node 'one'"));
  CHECK(fleet.state.nodes().size() == 2);
}

TEST_CASE("a machine that takes the name of a lost node leaves it its own earlier name") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{node_of(fleet, "one", "m1")});
  fleet.command(RegisterNode{node_of(fleet, "two", "m2")});
  fleet.command(ReportNodeStatus{"one", NodeStatus::kLost, "gone"});
  const NodeId id = fleet.state.node_named("two")->id;
  fleet.command(RegisterNode{node_of(fleet, "one", "m2")});
  CHECK(fleet.state.node_named("one")->id == id);
  CHECK(fleet.state.node_named("two")->status == NodeStatus::kLost);
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded);
  CHECK(loaded->digest() == fleet.state.digest());
  CHECK(loaded->node_named("one")->id == id);
  CHECK(loaded->node_of_machine("m1") == loaded->node_named("two"));
  // The lost machine comes back under its new name, or any other.
  fleet.command(RegisterNode{node_of(fleet, "three", "m1")});
  CHECK(fleet.state.nodes().size() == 2);
  CHECK(fleet.state.node_named("two") == nullptr);
}

TEST_CASE("a node of an earlier release has no machine id: it is known by its name, or by its GPUs") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{fleet.node("one")});
  NodeSpec now = fleet.node("one");
  now.machine = "m1";
  now.name = "other";
  fleet.command(RegisterNode{now});
  CHECK(fleet.state.nodes().size() == 1);
  CHECK(fleet.state.node_named("other")->spec.machine == "m1");
  fleet.command(RegisterNode{fleet.node("named")});
  NodeSpec named = fleet.node("named");
  named.machine = "m2";
  fleet.command(RegisterNode{named});
  CHECK(fleet.state.nodes().size() == 2);
}

TEST_CASE("a node that is removed leaves its name alone, once nothing holds it") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{node_of(fleet, "one", "m1")});
  fleet.command(RegisterNode{node_of(fleet, "two", "m2")});
  fleet.command(ReportNodeStatus{"one", NodeStatus::kLost, "gone"});
  CHECK_EQ(fleet.state.nodes_in(NodeStatus::kLost), 1);
  fleet.command(ReportNodeStatus{"one", NodeStatus::kLost, "its Node object was deleted", true});
  REQUIRE(fleet.state.node_named("one") != nullptr);
  CHECK(fleet.state.node_named("one")->removed);
  CHECK(fleet.state.node_named("one")->gpus.empty());
  CHECK_EQ(fleet.state.nodes_in(NodeStatus::kLost), 0);
  CHECK_EQ(fleet.state.audit(), std::nullopt);
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded);
  CHECK(loaded->digest() == fleet.state.digest());
  CHECK(loaded->node_named("one")->removed);
  CHECK_EQ(loaded->audit(), std::nullopt);
  // Told once more, it changes nothing; another machine may have the name.
  const Seq before = fleet.state.last_seq();
  fleet.command(ReportNodeStatus{"one", NodeStatus::kLost, "its Node object was deleted", true});
  CHECK(fleet.state.last_seq() == before);
  fleet.command(RegisterNode{node_of(fleet, "one", "m3")});
  CHECK_FALSE(fleet.state.node_named("one")->removed);
  CHECK_EQ(fleet.state.nodes_in(NodeStatus::kReady), 2);
  CHECK_EQ(gpus_of(fleet.state), 16);
}

TEST_CASE("a node that is removed is forgotten when the job has left its other nodes too") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{node_of(fleet, "one", "m1")});
  fleet.command(RegisterNode{node_of(fleet, "two", "m2")});
  JobSpec gang = HandDrivenFleet::job("a", 8);
  gang.groups[0].count = 2;
  const JobId job = fleet.submit(gang);
  fleet.decide(StartDecision{job, {fleet.place(job, "one", 0), fleet.place(job, "two", 0)}});
  fleet.command(ReportNodeStatus{"one", NodeStatus::kLost, "its Node object was deleted", true});
  CHECK_FALSE(fleet.state.node_named("one")->removed);  // its places are held until the attempt has ended
  CHECK(fleet.state.removals().contains(fleet.state.node_named("one")->id));
  CHECK_EQ(fleet.state.audit(), std::nullopt);
  auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded);
  CHECK(loaded->removals() == fleet.state.removals());
  CHECK(loaded->digest() == fleet.state.digest());
  fleet.command(ReportTaskExited{{job, 1, 1, 1, ExitReason::kExited, 0, ""}});
  CHECK(fleet.state.node_named("one")->removed);
  CHECK(fleet.state.removals().empty());
  CHECK_EQ(fleet.state.audit(), std::nullopt);
}

}  // namespace
}  // namespace berth::control

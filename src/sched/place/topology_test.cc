#include "sched/place/topology.h"

#include "explain/why.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

struct Racks : FleetFixture {
  Racks() {
    ClusterConfig with_levels = config({queue("q")});
    with_levels.topology_levels = {"block", "rack"};
    command(ApplyConfig{with_levels, "op"});
  }

  void add(const std::string& name, const std::vector<std::string>& topology, std::int32_t gpus = 8) {
    NodeSpec spec = node(name, gpus);
    spec.topology = topology;
    command(RegisterNode{spec});
  }

  JobSpec within(const std::string& level, std::int32_t tasks, std::int32_t gpus) const {
    JobSpec spec = job("q", tasks, gpus);
    spec.topology.required = level;
    return spec;
  }

  JobId started(const JobSpec& spec) {
    const JobId id = submit(spec);
    cycle();
    return id;
  }
};

TEST_CASE("a gang goes to the domain with the least room that holds it") {
  Racks fleet;
  for (const char* name : {"a1", "a2", "a3"}) fleet.add(name, {"b1", "r1"});
  for (const char* name : {"c1", "c2"}) fleet.add(name, {"b1", "r2"});
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("rack", 2, 8))), "c1 c2");
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("rack", 3, 8))), "a1 a2 a3");
}

TEST_CASE("the same node goes before the same rack, and the same rack before the same block") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"}, 2);
  fleet.add("a2", {"b1", "r1"}, 2);
  fleet.add("c1", {"b1", "r2"}, 8);
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("block", 4, 1))), "c1 c1 c1 c1");
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("rack", 5, 1))), "waits");
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("block", 5, 1))), "a1 a1 a2 a2 c1");
}

TEST_CASE("without a domain that holds all, a preferred level is cut into the fewest domains") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"});
  fleet.add("c1", {"b1", "r2"});
  fleet.add("c2", {"b1", "r2"});
  fleet.add("d1", {"b1", "r3"});
  fleet.add("d2", {"b1", "r3"});
  fleet.add("d3", {"b1", "r3"});
  JobSpec spec = fleet.job("q", 5, 8);
  spec.topology.preferred = "rack";
  CHECK_EQ(fleet.nodes_of(fleet.started(spec)), "c1 c2 d1 d2 d3");
}

TEST_CASE("a required level holds its preferred parts: the rack with two nodes free and the one that is left") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"});
  fleet.add("c1", {"b1", "r2"});
  fleet.add("c2", {"b1", "r2"});
  fleet.add("d1", {"b2", "r3"});
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("block", 3, 8))), "a1 c1 c2");
}

TEST_CASE("rank order follows the domains, not the order in which nodes joined") {
  Racks fleet;
  fleet.add("x", {"b1", "r2"});
  fleet.add("y", {"b1", "r1"});
  fleet.add("z", {"b1", "r2"});
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.job("q", 3, 8))), "y x z");
}

TEST_CASE("the domain that comes closest is told, with what is free there and what of it can be used") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"});
  fleet.add("a2", {"b1", "r1"});
  fleet.add("c1", {"b1", "r2"});
  fleet.add("c2", {"b1", "r2"});
  REQUIRE(fleet.runs(fleet.started(fleet.within("node", 1, 6))));
  REQUIRE(fleet.runs(fleet.started(fleet.within("node", 1, 7))));
  const JobId waits = fleet.started(fleet.within("rack", 2, 8));
  CHECK_EQ(fleet.nodes_of(waits), "c1 c2");
  const JobId last = fleet.submit(fleet.within("node", 2, 2));
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(last), "waits");
  const auto explanation = explain::why(fleet.state, last, fleet.now, explain::Viewer::sees_all());
  CHECK_EQ(explanation.answer.headline, "Job 4 waits for 4 free GPUs; 3 are free now.");
  fleet.add("e1", {"b2", "r4"}, 3);
  fleet.cycle();
  const auto again = explain::why(fleet.state, last, fleet.now, explain::Viewer::sees_all());
  CHECK(again.reason.code == ReasonCode::kTopology);
  CHECK_EQ(again.answer.headline,
           "Job 4 waits for 4 GPUs within one node; e1 comes closest: 3 free, 2 of them in pieces that its tasks can "
           "use.");
  const auto& remedies = again.answer.remedies;
  CHECK(std::any_of(remedies.begin(), remedies.end(), [](const WhyAnswer::Remedy& remedy) {
    return remedy.kind == "level" && remedy.text == "the job did not have to be within one node";
  }));
}

TEST_CASE("what no domain could hold were it empty is never, though the fleet could") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"});
  fleet.add("c1", {"b1", "r2"});
  const JobId id = fleet.submit(fleet.within("rack", 2, 8));
  fleet.cycle();
  const auto explanation = explain::why(fleet.state, id, fleet.now, explain::Viewer::sees_all());
  CHECK(explanation.reason.code == ReasonCode::kNeverFits);
  CHECK_EQ(explanation.answer.headline,
           "Job 1 can never start: it asks for 16 GPUs within one rack, and no rack could hold that, even if empty.");
}

TEST_CASE("a gang that may grow takes more only inside its domain") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"});
  fleet.add("a2", {"b1", "r1"});
  fleet.add("c1", {"b1", "r2"});
  JobSpec spec = fleet.within("rack", 3, 8);
  spec.groups.front().min_count = 1;
  CHECK_EQ(fleet.nodes_of(fleet.started(spec)), "a1 a2");
}

TEST_CASE("a node names its domains in its spec or by labels called like the levels") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"});
  NodeSpec spec = FleetFixture::node("a2", 8);
  spec.labels = {{"block", "b1"}, {"rack", "r1"}};
  fleet.command(RegisterNode{spec});
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("rack", 2, 8))), "a1 a2");
  CHECK_EQ(fleet.state.audit().value_or(""), "");
}

TEST_CASE("a name means something only inside the domain around it, and no name is no domain") {
  Racks fleet;
  fleet.add("a1", {"b1", "r1"});
  fleet.add("a2", {"b2", "r1"});
  fleet.add("a3", {"b1"});
  fleet.add("a4", {});
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("rack", 2, 8))), "waits");
  CHECK_EQ(fleet.nodes_of(fleet.started(fleet.within("block", 2, 8))), "a3 a1");
}

TEST_CASE("a victim's rack is emptied for a gang that needs one whole") {
  Racks fleet;
  ClusterConfig config = fleet.state.config();
  config.queues.push_back(FleetFixture::queue("owner"));
  config.queues.back().guaranteed.gpu_milli = 16 * kMilli;
  fleet.command(ApplyConfig{config, "op"});
  fleet.add("a1", {"b1", "r1"});
  fleet.add("a2", {"b1", "r1"});
  fleet.add("c1", {"b1", "r2"});
  fleet.add("c2", {"b1", "r2"});
  for (int i = 0; i < 3; ++i) REQUIRE(fleet.runs(fleet.started(fleet.job("q", 1, 8))));
  JobSpec spec = fleet.within("rack", 2, 8);
  spec.queue = "owner";
  const JobId id = fleet.started(spec);
  REQUIRE(fleet.state.job(id)->nomination.has_value());
  CHECK_EQ(fleet.state.job(id)->nomination->victims.size(), 1);
}

TEST_CASE("the index of domains follows nodes, gangs and levels, and equals one built from scratch") {
  Racks fleet;
  for (int n = 0; n < 6; ++n) fleet.add("n" + std::to_string(n), {"b" + std::to_string(n % 2), "r1"}, 4);
  const JobId id = fleet.started(fleet.within("rack", 3, 4));
  CHECK_EQ(fleet.state.audit().value_or(""), "");
  fleet.command(CordonNode{"n1", true, false, "op"});
  fleet.add("n2", {"b1", "r2"}, 4);
  CHECK_EQ(fleet.state.audit().value_or(""), "");
  ClusterConfig other = fleet.state.config();
  other.topology_levels = {"rack"};
  fleet.command(ApplyConfig{other, "op"});
  CHECK_EQ(fleet.state.audit().value_or(""), "");
  CHECK(fleet.runs(id));
}

}  // namespace
}  // namespace berth

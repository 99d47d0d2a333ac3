// Node rules and tolerations in the cycle: which nodes they allow, and when what has changed about a node is seen.

#include <doctest/doctest.h>

#include "model/node_rule.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

struct RuledFleet : FleetFixture {
  RuledFleet() { command(ApplyConfig{config({queue("q")}), "op"}); }

  void add(const std::string& name, const Labels& labels, std::vector<Taint> taints = {}) {
    NodeSpec spec = node(name, 4);
    spec.labels = labels;
    spec.taints = std::move(taints);
    command(RegisterNode{spec});
  }
  JobSpec ruled(std::int32_t gpus, std::string_view line) const {
    JobSpec spec = job("q", 1, gpus);
    spec.groups.front().node_rules = {*parse_node_rule(line)};
    return spec;
  }
  JobSpec tolerant(const std::string& toleration) const {
    JobSpec spec = job("q", 1, 1);
    spec.groups.front().tolerations = {toleration};
    return spec;
  }
};

}  // namespace

TEST_CASE("a job that waits for a node that matches its rule starts when a node joins, or comes with other labels") {
  RuledFleet fleet;
  fleet.add("n1", {{"zone", "a"}});
  const JobId first = fleet.submit(fleet.ruled(1, "zone=b"));
  const JobId second = fleet.submit(fleet.ruled(4, "zone=c"));
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(first) + " " + fleet.nodes_of(second), "waits waits");
  SUBCASE("a node joins") { fleet.add("n2", {{"zone", "b"}}); }
  SUBCASE("a node has another label") { fleet.add("n1", {{"zone", "b"}}); }
  fleet.cycle();
  CHECK(fleet.runs(first));
  CHECK_FALSE(fleet.runs(second));
  fleet.add("n3", {{"zone", "c"}});
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(second), "n3");
}

TEST_CASE("jobs that differ in a rule alone are not of one equivalence class") {
  RuledFleet fleet;
  fleet.add("n1", {{"zone", "a"}});
  const JobId first = fleet.submit(fleet.ruled(1, "zone=b"));
  fleet.cycle();
  const JobId second = fleet.submit(fleet.ruled(1, "zone=a"));
  fleet.cycle();
  CHECK_FALSE(fleet.runs(first));
  CHECK(fleet.runs(second));
}

TEST_CASE("a task that runs stays where it is when its node matches no more") {
  RuledFleet fleet;
  fleet.add("n1", {{"zone", "a"}});
  const JobId first = fleet.submit(fleet.ruled(1, "zone=a"));
  fleet.cycle();
  fleet.add("n1", {{"zone", "b"}});
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(first), "n1");
}

TEST_CASE("a toleration of any value covers a taint of a node that joins later") {
  RuledFleet fleet;
  fleet.add("n1", {}, {{"team", "a"}});
  const JobId first = fleet.submit(fleet.tolerant("nvidia.com/gpu"));
  fleet.cycle();
  CHECK_FALSE(fleet.runs(first));
  fleet.add("n2", {}, {{"nvidia.com/gpu", "present"}});
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(first), "n2");
}

TEST_CASE("a toleration of one effect does not cover a taint with the other") {
  RuledFleet fleet;
  fleet.add("n1", {}, {{"x", "", TaintEffect::kNoExecute}});
  fleet.add("n2", {}, {{"y", ""}});
  const JobId first = fleet.submit(fleet.tolerant("x:NoSchedule"));
  const JobId second = fleet.submit(fleet.tolerant("y:NoExecute"));
  const JobId third = fleet.submit(fleet.tolerant("x"));
  fleet.cycle();
  CHECK_EQ(fleet.nodes_of(first) + " " + fleet.nodes_of(second), "waits waits");
  CHECK_EQ(fleet.nodes_of(third), "n1");
}

}  // namespace berth

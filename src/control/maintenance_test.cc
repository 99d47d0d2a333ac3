#include "control/maintenance.h"

#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

constexpr std::int64_t kHour = 3600;

struct MaintainedFleet : HandDrivenFleet {
  MaintainedFleet() {
    PoolConfig spare{"spare"};
    configure({queue("a")}, {spare});
    NodeSpec first = node("n1");
    first.labels = {{"row", "1"}};
    NodeSpec second = node("n2");
    second.labels = {{"row", "1"}, {"rack", "7"}};
    command(RegisterNode{first});
    command(RegisterNode{second});
    command(RegisterNode{node("s1", "spare")});
  }

  PlanMaintenance window(std::vector<std::string> nodes, std::int64_t in_s, std::int64_t for_s) const {
    PlanMaintenance plan;
    plan.nodes = std::move(nodes);
    plan.from = now + in_s * 1000;
    plan.for_s = for_s;
    plan.user = "op";
    return plan;
  }
  std::string refusal(const PlanMaintenance& plan) {
    const auto reply = try_command(plan);
    return reply ? "" : reply.error().message;
  }
  std::vector<std::string> nodes_of(const std::string& window) const {
    std::vector<std::string> names;
    for (const NodeId id : state.maintenance().find(window)->second.nodes) names.push_back(state.node(id).spec.name);
    return names;
  }
  bool open(const std::string& node) const { return state.node_named(node)->takes_tasks(); }
};

using Names = std::vector<std::string>;

TEST_CASE("a window is of the nodes that it names, or of those that are there and have the pool and the labels") {
  MaintainedFleet fleet;
  CHECK(fleet.command(fleet.window({"n2", "n1", "n2"}, kHour, 60)).name == "maintenance-1");
  CHECK(fleet.nodes_of("maintenance-1") == Names{"n1", "n2"});
  PlanMaintenance row = fleet.window({}, kHour, 60);
  row.labels = {{"row", "1"}};
  row.name = "row";
  fleet.command(row);
  CHECK(fleet.nodes_of("row") == Names{"n1", "n2"});
  PlanMaintenance rack = row;
  rack.labels.emplace_back("rack", "7");
  rack.name = "rack";
  fleet.command(rack);
  CHECK(fleet.nodes_of("rack") == Names{"n2"});
  PlanMaintenance pool = fleet.window({}, kHour, 60);
  pool.pool = "spare";
  pool.name = "pool";
  fleet.command(pool);
  fleet.command(RegisterNode{fleet.node("s2", "spare")});
  CHECK(fleet.nodes_of("pool") == Names{"s1"});  // s2 registered later
  pool.labels = {{"row", "1"}};
  pool.name = "nothing";
  CHECK(fleet.refusal(pool) == "no node is of that pool and has those labels");
  // Labels do not select a lost node; only its name does.
  fleet.command(ReportNodeStatus{"n2", NodeStatus::kLost, "fenced by op"});
  rack.name = "lost";
  CHECK(fleet.refusal(rack) == "no node is of that pool and has those labels");
  CHECK(fleet.refusal(fleet.window({"n2"}, kHour, 60)).empty());
}

TEST_CASE("a window that makes no sense is refused, and the refusal says why") {
  MaintainedFleet fleet;
  CHECK(fleet.refusal(fleet.window({}, kHour, 60)) == "nodes: name nodes, or select them by pool and labels");
  PlanMaintenance both = fleet.window({"n1"}, kHour, 60);
  both.pool = "spare";
  CHECK(fleet.refusal(both) == "nodes: name nodes, or select them by pool and labels");
  CHECK(fleet.refusal(fleet.window({"n9"}, kHour, 60)) == "no such node 'n9'");
  CHECK(fleet.refusal(fleet.window({"n1"}, kHour, 0)) == "for must be 1 second to 366 days");
  CHECK(fleet.refusal(fleet.window({"n1"}, kHour, 367 * 86'400)) == "for must be 1 second to 366 days");
  CHECK(fleet.refusal(fleet.window({"n1"}, 367 * 86'400, 60)) == "from must be within the next 366 days");
  CHECK(fleet.refusal(fleet.window({"n1"}, -100, 100)).starts_with("the window would end at "));
  CHECK(fleet.refusal(fleet.window({"n1"}, -100, 101)).empty());  // the window has one second left
  PlanMaintenance named = fleet.window({"n1"}, kHour, 60);
  named.name = "no name";
  CHECK(fleet.refusal(named).starts_with("name 'no name' is not a name"));
  PlanMaintenance why = fleet.window({"n1"}, kHour, 60);
  why.reason = std::string(1001, 'x');
  CHECK(fleet.refusal(why) == "reason must be UTF-8 of at most 1000 bytes");
  why.reason = "\xff";
  CHECK(fleet.refusal(why) == "reason must be UTF-8 of at most 1000 bytes");
}

TEST_CASE("the same window said again changes nothing, and another one of its name is refused") {
  MaintainedFleet fleet;
  PlanMaintenance plan = fleet.window({"n1"}, kHour, 60);
  plan.name = "firmware";
  CHECK_FALSE(fleet.command(plan).unchanged);
  const Seq seq = fleet.state.last_seq();
  CHECK(fleet.command(plan).unchanged);
  CHECK(fleet.state.last_seq() == seq);
  plan.for_s = 61;
  CHECK(fleet.refusal(plan) == "a window 'firmware' is planned already; cancel it or take another name");
  CHECK(fleet.command(fleet.window({"n1"}, kHour, 60)).name == "maintenance-1");
  CHECK(fleet.command(fleet.window({"n1"}, kHour, 60)).name == "maintenance-2");
  fleet.command(CancelMaintenance{"maintenance-1", "op"});
  CHECK(fleet.command(fleet.window({"n1"}, kHour, 60)).name == "maintenance-1");  // the first name that is not used
}

TEST_CASE("a thousand windows are the most") {
  MaintainedFleet fleet;
  for (int i = 0; i < 1000; ++i) fleet.command(fleet.window({"n1"}, kHour + i, 60));
  CHECK(fleet.refusal(fleet.window({"n1"}, kHour, 60)) == "1000 windows are planned already; cancel some");
  fleet.command(CancelMaintenance{"maintenance-500", "op"});
  CHECK(fleet.refusal(fleet.window({"n1"}, kHour, 60)).empty());
}

TEST_CASE("a node is open when none of its windows lasts") {
  MaintainedFleet fleet;
  fleet.command(fleet.window({"n1", "n2"}, 100, 100));
  fleet.command(fleet.window({"n1"}, 150, 100));
  fleet.pass(99);
  CHECK((fleet.open("n1") && fleet.open("n2")));
  fleet.pass(1);
  CHECK_FALSE((fleet.open("n1") || fleet.open("n2")));
  fleet.pass(100);  // the first window is over, the second goes on
  CHECK_FALSE(fleet.open("n1"));
  CHECK(fleet.open("n2"));
  fleet.pass(50);
  CHECK(fleet.open("n1"));
  CHECK(fleet.state.maintenance().empty());
}

TEST_CASE("what is cancelled is over at once, also while it lasts") {
  MaintainedFleet fleet;
  fleet.command(fleet.window({"n1"}, 100, 100));
  fleet.command(fleet.window({"n2"}, 300, 100));
  fleet.pass(100);
  CHECK_FALSE(fleet.open("n1"));
  fleet.command(CancelMaintenance{"maintenance-1", "op"});
  CHECK(fleet.open("n1"));
  fleet.command(CancelMaintenance{"maintenance-2", "op"});
  fleet.pass(200);
  CHECK(fleet.open("n2"));
  const auto again = fleet.try_command(CancelMaintenance{"maintenance-2", "op"});
  REQUIRE_FALSE(again);
  CHECK(again.error().code == ErrorCode::kNotFound);
}

TEST_CASE("who is not gone by then is asked to leave one grace of his before the window, and nobody else") {
  MaintainedFleet fleet;
  JobSpec brief = MaintainedFleet::job("a", 1);
  brief.time_limit_s = 3 * kHour;
  JobSpec patient = MaintainedFleet::job("a", 1);
  patient.checkpoint.grace_s = 300;
  const JobId gone = fleet.start(brief, "n1", 0);  // it ends in the second in which the window begins
  brief.time_limit_s += 1;
  const JobId late = fleet.start(brief, "n1", 1);
  const JobId slow = fleet.start(patient, "n1", 2);
  const JobId elsewhere = fleet.start(MaintainedFleet::job("a", 1), "n2", 0);
  fleet.command(fleet.window({"n1"}, 3 * kHour, 60));
  const std::int64_t grace_s = fleet.state.config().scheduling.default_grace_s;
  REQUIRE(grace_s < 300);
  fleet.pass(3 * kHour - 301);
  CHECK_FALSE(fleet.stopping(slow));
  fleet.pass(1);
  CHECK(fleet.stopping(slow));
  CHECK_FALSE(fleet.stopping(late));
  fleet.pass(300 - grace_s - 1);
  CHECK_FALSE(fleet.stopping(late));
  fleet.pass(1);
  CHECK(fleet.stopping(late));
  CHECK(fleet.state.job(late)->attempt->stop->cause == StopCause::kMaintenance);
  CHECK_FALSE((fleet.stopping(gone) || fleet.stopping(elsewhere)));
}

TEST_CASE("of a window that is planned late, grace is kept") {
  MaintainedFleet fleet;
  const JobId job = fleet.start(MaintainedFleet::job("a", 1), "n1", 0);
  fleet.command(fleet.window({"n1"}, 1, 60));
  CHECK(fleet.stopping(job));
  const std::int64_t grace_s = fleet.state.config().scheduling.default_grace_s;
  CHECK(fleet.state.job(job)->attempt->stop->deadline == fleet.now + grace_s * 1000);
}

TEST_CASE("who need not leave any more because the window is cancelled stays") {
  MaintainedFleet fleet;
  const JobId job = fleet.start(MaintainedFleet::job("a", 1), "n1", 0);
  fleet.command(fleet.window({"n1"}, kHour, 60));
  fleet.command(CancelMaintenance{"maintenance-1", "op"});
  fleet.pass(2 * kHour);
  CHECK_FALSE(fleet.stopping(job));
}

}  // namespace
}  // namespace berth::control

#include "control/hand_driven_fleet.h"
#include "model/exit_code.h"

namespace berth::control {
namespace {

struct SuspectFleet : HandDrivenFleet {
  SuspectFleet() {
    configure({queue("research")});
    for (const char* name : {"n1", "n2", "n3"}) command(RegisterNode{node(name)});
  }

  // Starts a job on the node, where its only task ends so.
  JobId failed_on(const std::string& name, ExitReason reason, std::int32_t code, const std::string& user) {
    JobSpec spec = job("research", 1);
    spec.user = user;
    spec.retries = 3;
    const JobId id = start(spec, name, 0);
    end(id, reason, code);
    return id;
  }
  void end(JobId id, ExitReason reason, std::int32_t code) {
    command(ReportTaskExited{{id, state.job(id)->attempts, 0, 1, reason, code, "x"}});
  }
  void start_on(JobId id, const std::string& name, std::uint8_t gpu) {
    pass(400);
    decide(StartDecision{id, {place(id, name, gpu)}});
  }
  void runs(JobId id) { command(ReportTaskStarted{id, state.job(id)->attempts, 0, 1}); }
  void saves(JobId id, std::int64_t step) { command(ReportCheckpoint{id, state.job(id)->attempts, step}); }
  const state::NodeState& n1() const { return *state.node_named("n1"); }
};

}  // namespace

TEST_CASE_FIXTURE(SuspectFleet,
                  "a node that refused two jobs which then run elsewhere is cordoned, and neither loses a try") {
  const JobId one = failed_on("n1", ExitReason::kStartFailed, kNodeShortCode, "ann");
  start_on(one, "n2", 0);
  CHECK(n1().blames.empty());
  runs(one);
  REQUIRE(n1().blames.size() == 1);
  CHECK_FALSE(n1().cordoned);
  const JobId two = failed_on("n1", ExitReason::kStartFailed, kNodeShortCode, "bob");
  start_on(two, "n2", 1);
  runs(two);
  CHECK(n1().cordoned);
  CHECK_EQ(n1().cordon_why,
           "suspect: jobs 1, 2 failed here within 1d and did well elsewhere (scheduling.suspect_users)");
  CHECK(state.job(two)->failures == 0);
  command(CordonNode{"n1", false, false, "op"});
  CHECK(n1().blames.empty());
}

TEST_CASE_FIXTURE(SuspectFleet,
                  "an exit blames the node once the job saves more, or succeeds, elsewhere; its try is given back") {
  const JobId one = failed_on("n1", ExitReason::kExited, 1, "ann");
  CHECK(state.job(one)->failures == 1);
  start_on(one, "n2", 0);
  runs(one);
  CHECK(n1().blames.empty());
  saves(one, 0);
  CHECK(n1().blames.empty());
  saves(one, 5);
  CHECK(n1().blames.size() == 1);
  CHECK(state.job(one)->failures == 0);
  saves(one, 6);
  CHECK(n1().blames.size() == 1);
  const JobId two = failed_on("n1", ExitReason::kSignalled, 139, "bob");
  start_on(two, "n3", 0);
  runs(two);
  CHECK_FALSE(n1().cordoned);
  end(two, ExitReason::kExited, 0);
  CHECK(n1().cordoned);
  CHECK_EQ(state.finished(two)->outcome, Outcome::kSucceeded);
}

TEST_CASE_FIXTURE(SuspectFleet, "a fault that goes with the program, or that is nobody's, blames no node") {
  const JobId wrong = failed_on("n1", ExitReason::kExited, 1, "ann");
  start_on(wrong, "n2", 0);
  runs(wrong);
  end(wrong, ExitReason::kExited, 1);
  start_on(wrong, "n3", 0);
  runs(wrong);
  end(wrong, ExitReason::kExited, 1);
  CHECK(n1().blames.empty());
  // What its own memory limit, the server or the restart of a machine ended.
  std::uint8_t gpu = 0;
  for (const auto& [reason, code] :
       {std::pair{ExitReason::kOutOfMemory, 137}, std::pair{ExitReason::kStartFailed, kNotStartedCode},
        std::pair{ExitReason::kSupervisorLost, 1}}) {
    const JobId id = failed_on("n1", reason, code, "ann");
    start_on(id, "n2", gpu++);
    runs(id);
    saves(id, 1);
  }
  // The same node again.
  const JobId back = failed_on("n1", ExitReason::kStartFailed, kNodeShortCode, "ann");
  start_on(back, "n1", 1);
  runs(back);
  CHECK(n1().blames.empty());
  CHECK(state.audit().value_or("").empty());
}

TEST_CASE_FIXTURE(SuspectFleet, "one user alone makes no node suspect, and no second node is cordoned beside a first") {
  const auto refused = [&](const std::string& name, const std::string& user, std::uint8_t gpu) {
    const JobId id = failed_on(name, ExitReason::kStartFailed, kNodeShortCode, user);
    start_on(id, "n3", gpu);
    runs(id);
  };
  refused("n1", "ann", 0);
  refused("n1", "ann", 1);
  CHECK(n1().blames.size() == 1);
  CHECK_FALSE(n1().cordoned);
  refused("n1", "bob", 2);
  CHECK(n1().cordoned);
  refused("n2", "ann", 3);
  pass(2 * 86'400);  // the blames of the first are old by now; it stays cordoned, and counts
  refused("n2", "bob", 4);
  refused("n2", "ann", 5);
  CHECK(state.node_named("n2")->blames.size() == 2);
  CHECK_FALSE(state.node_named("n2")->cordoned);
}

TEST_CASE_FIXTURE(SuspectFleet, "a program that saves and fails on each node gets one try back, and no more") {
  const JobId id = failed_on("n1", ExitReason::kExited, 1, "ann");
  start_on(id, "n2", 0);
  saves(id, 1);
  CHECK(state.job(id)->failures == 0);
  end(id, ExitReason::kExited, 1);
  start_on(id, "n3", 0);
  saves(id, 2);
  CHECK(state.node_named("n2")->blames.size() == 1);
  CHECK(state.job(id)->failures == 1);
  end(id, ExitReason::kExited, 1);
  CHECK(state.job(id)->failures == 2);
}

TEST_CASE_FIXTURE(SuspectFleet, "a node that was removed is not blamed under its name") {
  const JobId id = failed_on("n1", ExitReason::kExited, 1, "ann");
  command(ReportNodeStatus{"n1", NodeStatus::kLost, "gone", true});
  command(RegisterNode{node("n1")});
  start_on(id, "n2", 0);
  saves(id, 1);
  CHECK(n1().blames.empty());
  CHECK(state.job(id)->failures == 1);
}

TEST_CASE("where nothing makes a node suspect, none is blamed and no try is given back") {
  SuspectFleet fleet;
  ClusterConfig config = fleet.state.config();
  config.scheduling.suspect_users = 0;
  fleet.command(ApplyConfig{config, "op"});
  const JobId id = fleet.failed_on("n1", ExitReason::kExited, 1, "ann");
  fleet.start_on(id, "n2", 0);
  fleet.saves(id, 1);
  CHECK(fleet.n1().blames.empty());
  CHECK(fleet.state.job(id)->failures == 1);
}

TEST_CASE_FIXTURE(SuspectFleet, "a state that is saved and loaded blames as it would have") {
  const JobId one = failed_on("n1", ExitReason::kExited, 1, "ann");
  const JobId two = failed_on("n1", ExitReason::kExited, 1, "bob");
  start_on(two, "n2", 1);
  saves(two, 1);
  state = state::State::load(state.save()).value();
  CHECK(n1().blames.size() == 1);
  start_on(one, "n2", 0);
  saves(one, 1);
  CHECK(n1().cordoned);
}

}  // namespace berth::control

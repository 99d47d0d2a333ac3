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

  // Of a job with two tasks.
  void place_two(JobId id, const std::string& first, const std::string& second, std::uint8_t gpu) {
    TaskPlacement other = place(id, second, gpu);
    pass(400);
    decide(StartDecision{id, {place(id, first, gpu), other}});
  }
  JobId gang(const std::string& first, const std::string& second, std::uint8_t gpu, const std::string& user) {
    JobSpec spec = job("research", 1);
    spec.user = user;
    spec.retries = 3;
    spec.groups.front().count = 2;
    const JobId id = submit(spec);
    place_two(id, first, second, gpu);
    return id;
  }
  void end_task(JobId id, std::uint32_t task, ExitReason reason, std::int32_t code) {
    command(ReportTaskExited{{id, state.job(id)->attempts, task, 1, reason, code, "x"}});
  }
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

TEST_CASE_FIXTURE(SuspectFleet, "a gang whose first failing task has ended the others blames the node of that one") {
  const JobId id = gang("n1", "n2", 0, "ann");
  end_task(id, 0, ExitReason::kExited, 1);
  CHECK(stopping(id));
  end_task(id, 1, ExitReason::kSignalled, 137);
  CHECK(state.job(id)->failures == 1);
  place_two(id, "n2", "n3", 0);
  saves(id, 5);
  CHECK(n1().blames.size() == 1);
  CHECK(state.node_named("n2")->blames.empty());
  CHECK(state.job(id)->failures == 0);
}

TEST_CASE_FIXTURE(SuspectFleet, "a gang that was refused pauses longer each time, as another job does") {
  const JobId id = gang("n1", "n2", 0, "ann");
  for (const std::int64_t pause_s : {1, 2, 4, 8}) {
    end_task(id, 0, ExitReason::kStartFailed, kNodeShortCode);
    end_task(id, 1, ExitReason::kSignalled, 137);
    CHECK_EQ(state.job(id)->past.back().outcome, Outcome::kNodeLost);
    CHECK_EQ(state.job(id)->not_before - state.now(), pause_s * 1000);
    place_two(id, "n1", "n2", 0);
  }
}

TEST_CASE_FIXTURE(SuspectFleet, "what fails because another node is lost blames no node") {
  const JobId id = gang("n1", "n2", 0, "ann");
  end_task(id, 0, ExitReason::kExited, 1);
  command(ReportNodeStatus{"n2", NodeStatus::kLost, "gone"});
  CHECK_EQ(state.job(id)->past.back().outcome, Outcome::kNodeLost);
  TaskPlacement other = place(id, "n3", 1);
  pass(400);
  decide(StartDecision{id, {place(id, "n3", 0), other}});
  saves(id, 5);
  CHECK(n1().blames.empty());
}

TEST_CASE_FIXTURE(SuspectFleet, "a program that exits with a code of berth's has failed by itself") {
  JobSpec spec = job("research", 1);
  spec.groups.front().count = 2;
  const JobId id = submit(spec);
  place_two(id, "n1", "n2", 0);
  end_task(id, 0, ExitReason::kExited, kNotStartedCode);
  end_task(id, 1, ExitReason::kStartFailed, 127);
  REQUIRE(state.finished(id) != nullptr);
  CHECK_EQ(state.finished(id)->outcome, Outcome::kStartFailed);
}

TEST_CASE_FIXTURE(SuspectFleet, "what failed before a node was uncordoned, or before the window, does not count") {
  std::vector<JobId> ids;
  for (const char* user : {"ann", "bob", "cat", "dan"}) {
    ids.push_back(failed_on("n1", ExitReason::kExited, 1, user));
    start_on(ids.back(), "n2", static_cast<std::uint8_t>(ids.size()));
  }
  saves(ids[0], 1);
  saves(ids[1], 1);
  CHECK(n1().cordoned);
  command(CordonNode{"n1", false, false, "op"});
  saves(ids[2], 1);
  saves(ids[3], 1);
  CHECK(n1().blames.empty());
  CHECK_FALSE(n1().cordoned);
  const JobId eve = failed_on("n1", ExitReason::kExited, 1, "eve");
  start_on(eve, "n3", 0);
  const JobId fay = failed_on("n1", ExitReason::kExited, 1, "fay");
  start_on(fay, "n3", 1);
  pass(2 * 86'400);
  saves(eve, 1);
  saves(fay, 1);
  CHECK(n1().blames.size() == 2);
  CHECK_FALSE(n1().cordoned);
}

TEST_CASE_FIXTURE(SuspectFleet, "a node that was cordoned for another reason leaves room for one that is suspect") {
  const auto refused = [&](const std::string& name, const std::string& user, std::uint8_t gpu) {
    const JobId id = failed_on(name, ExitReason::kStartFailed, kNodeShortCode, user);
    start_on(id, "n3", gpu);
    runs(id);
  };
  refused("n1", "ann", 0);
  command(CordonNode{"n1", true, false, "op"});
  refused("n2", "ann", 1);
  refused("n2", "bob", 2);
  CHECK(state.node_named("n2")->cordoned);
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

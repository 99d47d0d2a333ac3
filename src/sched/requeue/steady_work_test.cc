// Counts what a cycle looks at for pending jobs. A regression here makes every cycle slower and fails no other test.

#include <string>
#include <vector>

#include "sched/backfill/earliest_start.h"
#include "state/transaction.h"
#include "support/fleet_fixture.h"

namespace berth {

namespace {

constexpr int kUsers = 30;  // below each branch, each with a class of small and a class of large jobs

// Two branches, each blocked by its max, and a third that waits for GPUs of a model of its own.
struct ThreeBranches : FleetFixture {
  std::vector<JobId> running;  // of the first, second and third branch: one GPU each

  ThreeBranches() {
    std::vector<QueueConfig> queues;
    for (const char* branch : {"first", "second", "places"}) {
      queues.push_back(queue(branch));
      if (std::string(branch) != "places") queues.back().max.gpu_milli = 4000;
      for (int user = 0; user < kUsers; ++user)
        queues.push_back(queue(std::string(branch) + "/u" + std::to_string(user)));
    }
    command(ApplyConfig{config(queues), "op"});
    command(RegisterNode{node("n1", 16, "H100")});
    command(RegisterNode{node("n2", 4, "A100")});
    for (const char* branch : {"first", "second", "places"}) {
      for (int i = 0; i < 4; ++i) running.push_back(submit(job_of(branch, 0, 1)));
    }
    cycle();
    for (const JobId id : running) REQUIRE(runs(id));
    for (const char* branch : {"first", "second", "places"}) {
      for (int user = 0; user < kUsers; ++user) {
        for (const int gpus : {1, 2}) submit(job_of(branch, user, gpus));
      }
    }
    cycle();
    rest();
    CHECK_EQ(state.waits().active_count(), 0);
  }

  static JobSpec job_of(const std::string& branch, int user, std::int32_t gpus) {
    JobSpec spec = job(branch + "/u" + std::to_string(user), 1, gpus);
    spec.groups.front().request.gpu_models = {branch == "places" ? "A100" : "H100"};
    return spec;
  }

  // Runs cycles until no class is active.
  void rest() {
    while (state.waits().active_count() > 0) cycle();
  }

  Plan after_exit_of(JobId id) {
    now = now + 1000;
    exit(id, 0);
    return cycle();
  }
};

}  // namespace

TEST_CASE_FIXTURE(ThreeBranches,
                  "room below one ceiling touches no lane of another branch, and none that asks for more") {
  const Plan plan = after_exit_of(running[0]);
  CHECK_EQ(plan.decisions.size(), 1);
  CHECK_EQ(plan.classes_probed, kUsers);
  CHECK_EQ(plan.classes_resumed, 0);
}

TEST_CASE_FIXTURE(ThreeBranches, "a GPU that is free again touches those alone that one GPU of its model serves") {
  const Plan plan = after_exit_of(running[8]);
  CHECK_EQ(plan.classes_probed, kUsers);
  CHECK_EQ(plan.classes_resumed, 0);
}

TEST_CASE_FIXTURE(ThreeBranches, "those that were refused after all are sent back once, unprobed") {
  const Plan one = after_exit_of(running[0]);
  REQUIRE_EQ(state.waits().active_count(), kUsers - 1);
  const Plan next = after_exit_of(running[8]);
  CHECK_EQ(next.classes_resumed, kUsers - 1);
  CHECK_EQ(next.classes_probed, kUsers);
}

TEST_CASE_FIXTURE(ThreeBranches,
                  "where no start could be held nobody is walked to for it, until somebody has waited long enough") {
  now = now + 60'000;
  const Plan minute = cycle();
  REQUIRE_EQ(minute.decisions.size(), 1);
  CHECK(std::holds_alternative<SeekDecision>(minute.decisions.front()));
  CHECK_EQ(minute.classes_walked, 1);
  now = now + state.config().scheduling.backfill_after_s * 1000;
  const Plan days = cycle();
  CHECK_GE(days.classes_walked, 2 * 3 * kUsers);
}

TEST_CASE_FIXTURE(ThreeBranches, "who arrives is probed alone") {
  now = now + 1000;
  submit(job_of("second", 0, 4));
  const Plan plan = cycle();
  CHECK_EQ(plan.classes_probed, 1);
  CHECK_EQ(plan.classes_resumed, 0);
}

// Two nodes with 16 GPUs, each GPU with a job that is expected to run longer than the one before it.
struct KnownEnds : FleetFixture {
  KnownEnds() {
    ClusterConfig rules = config({queue("a")});
    rules.scheduling.backfill_after_s = 0;
    command(ApplyConfig{rules, "op"});
    command(RegisterNode{node("n1", 16)});
    command(RegisterNode{node("n2", 16)});
    for (int i = 1; i <= 32; ++i) {
      JobSpec spec = job("a", 1, 1);
      spec.estimate_s = i * 100;
      submit(spec);
    }
    cycle();
    REQUIRE_EQ(state.running().size(), 32);
  }

  std::uint64_t ends_worked_out(std::int32_t gpus) {
    const JobId blocked = submit(job("a", 1, gpus));
    state::Transaction transaction(state);
    sched::SearchStats work;
    const std::vector<sched::ExpectedEnd> starting;
    sched::Releases releases(state, now, starting);
    CHECK(sched::earliest_start(transaction, state, blocked, now, releases, work));
    return work.ends_worked_out;
  }
};

TEST_CASE_FIXTURE(KnownEnds, "of what runs, a start that is held works out the ends alone that come before it") {
  CHECK_EQ(ends_worked_out(1), 1);
  CHECK_LE(ends_worked_out(2), 4);
}

TEST_CASE_FIXTURE(KnownEnds,
                  "who runs longer than expected may end in a minute, which is worked out before what ends later") {
  now = now + 2'000'000;
  CHECK_EQ(ends_worked_out(1), 21);
}

}  // namespace berth

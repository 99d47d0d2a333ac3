// What becomes of a job whose attempts end through no exit of its program: its supervisor dies, or the machine has not
// the means to start it.

#include "control/effects.h"
#include "control/hand_driven_fleet.h"
#include "model/exit_code.h"

namespace berth::control {
namespace {

struct RequeueFleet : HandDrivenFleet {
  RequeueFleet() {
    configure({queue("research")});
    command(RegisterNode{node("n1")});
  }

  // Ends the only task of the running job, and returns for how long the job then waits.
  std::int64_t end(JobId job, ExitReason reason, std::int32_t code, const std::string& message) {
    command(ReportTaskExited{{job, state.job(job)->attempts, 0, 1, reason, code, message}});
    return state.job(job) == nullptr ? -1 : state.job(job)->not_before - now;
  }
  void start_again(JobId job) {
    pass(400);
    decide(StartDecision{job, {place(job, "n1", 0)}});
  }
};

}  // namespace

TEST_CASE_FIXTURE(RequeueFleet, "a job whose supervisor dies each time waits longer and longer, and then has failed") {
  const JobId id = start(job("research", 1), "n1", 0);
  for (const std::int64_t pause_s : {1, 2, 4, 8, 16}) {
    CHECK(end(id, ExitReason::kSupervisorLost, kSupervisorDiedCode, "its supervisor died") == pause_s * 1000);
    start_again(id);
  }
  CHECK(end(id, ExitReason::kSupervisorLost, kSupervisorDiedCode, "its supervisor died") == -1);
  REQUIRE(state.finished(id) != nullptr);
  CHECK(state.finished(id)->outcome == Outcome::kFailed);
}

TEST_CASE("an interactive job is refused where the queue, or one above it, opens no shells") {
  HandDrivenFleet fleet;
  std::vector<QueueConfig> queues{HandDrivenFleet::queue("open"), HandDrivenFleet::queue("vault"),
                                  HandDrivenFleet::queue("vault/deep")};
  queues[1].no_shell = true;
  fleet.configure(queues);
  JobSpec spec = HandDrivenFleet::job("open", 1);
  spec.kind = JobKind::kInteractive;
  CHECK(fleet.try_command(SubmitJob{spec, ""}).has_value());
  spec.queue = "vault/deep";
  const auto refused = fleet.try_command(SubmitJob{spec, ""});
  REQUIRE_FALSE(refused.has_value());
  CHECK_EQ(refused.error().message,
           "kind: queue 'vault' opens no shells in its jobs (shell: false), so no interactive job runs in it");
  spec.kind = JobKind::kGang;
  CHECK(fleet.try_command(SubmitJob{spec, ""}).has_value());
}

TEST_CASE_FIXTURE(RequeueFleet, "an interactive job is not queued again, as its terminal is gone") {
  JobSpec spec = job("research", 1);
  spec.kind = JobKind::kInteractive;
  const JobId id = start(spec, "n1", 0);
  CHECK_EQ(state.job(id)->spec.checkpoint.signal, 1);
  const auto effects = all_effects(state);
  REQUIRE_FALSE(effects.empty());
  CHECK(std::get<StartTask>(effects.front()).terminal);
  CHECK_EQ(std::get<StartTask>(effects.front()).stop_signal, 1);
  command(ReportTaskStarted{id, 1, 0, 1});
  CHECK(end(id, ExitReason::kSupervisorLost, 1, "the machine restarted") == -1);
  REQUIRE(state.finished(id) != nullptr);
  CHECK(state.finished(id)->outcome == Outcome::kNodeLost);
}

TEST_CASE_FIXTURE(RequeueFleet,
                  "an interactive job of which nothing has run yet is queued again for what is not its fault") {
  JobSpec spec = job("research", 1);
  spec.kind = JobKind::kInteractive;
  const JobId id = start(spec, "n1", 0);
  CHECK_EQ(end(id, ExitReason::kStartFailed, kNodeShortCode, "no process ids"), 1'000);
  start_again(id);
  CHECK_EQ(end(id, ExitReason::kStartFailed, kNotStartedCode, "it was not started"), 2'000);
  start_again(id);
  end(id, ExitReason::kNodeLost, 1, "the machine is gone");
  REQUIRE(state.job(id) != nullptr);
  start_again(id);
  CHECK_EQ(end(id, ExitReason::kStartFailed, 127, "cannot execute x"), -1);
  CHECK(state.finished(id)->outcome == Outcome::kStartFailed);
}

TEST_CASE_FIXTURE(RequeueFleet, "an interactive job is queued again after an eviction only if nothing of it has run") {
  JobSpec spec = job("research", 1);
  spec.kind = JobKind::kInteractive;
  const JobId id = start(spec, "n1", 0);
  const auto evict = [&] {
    Batch batch(state, now);
    batch.emit(StopBegan{id, state.job(id)->attempts, StopCause::kPreempt, JobId::none(), now + 1'000, 0});
    reconcile(batch);
  };
  evict();
  end(id, ExitReason::kKilled, 0, "");
  REQUIRE(state.job(id) != nullptr);
  start_again(id);
  command(ReportTaskStarted{id, 2, 0, 1});
  evict();
  CHECK_EQ(end(id, ExitReason::kKilled, 0, ""), -1);
  CHECK(state.finished(id)->outcome == Outcome::kPreempted);
}

TEST_CASE_FIXTURE(RequeueFleet, "a machine that restarts under a job costs it no pause and no retry") {
  const JobId id = start(job("research", 1), "n1", 0);
  for (int restart = 0; restart < 10; ++restart) {
    CHECK(end(id, ExitReason::kSupervisorLost, 1, "the machine restarted") <= 0);
    start_again(id);
  }
  CHECK(state.job(id)->failures == 0);
}

TEST_CASE_FIXTURE(RequeueFleet, "a machine without process ids fails no job: it waits and uses up no retry") {
  const JobId id = start(job("research", 1), "n1", 0);
  for (const std::int64_t pause_s : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300}) {
    CHECK(end(id, ExitReason::kStartFailed, kNodeShortCode, "no process ids") == pause_s * 1000);
    start_again(id);
  }
  CHECK(state.job(id)->failures == 0);
  CHECK(end(id, ExitReason::kStartFailed, 127, "cannot execute x") == -1);
}

TEST_CASE_FIXTURE(RequeueFleet, "a job that is cancelled when its tasks have exited already keeps its own end") {
  // Both reports are of one batch, as where the Job of a gang is complete when its last pod is told to have succeeded.
  const auto end_and_cancel = [&](JobId id, std::int32_t code) {
    const std::uint32_t attempt = state.job(id)->attempts;
    Batch batch(state, now);
    REQUIRE(handle(batch, ReportTaskExited{{id, attempt, 0, 1, ExitReason::kExited, code, ""}}).has_value());
    REQUIRE(handle(batch, CancelJob{id, "kubernetes"}).has_value());
    reconcile(batch);
    REQUIRE(state.finished(id) != nullptr);
    return state.finished(id)->outcome;
  };
  JobSpec spec = job("research", 1);
  CHECK(end_and_cancel(start(spec, "n1", 0), 0) == Outcome::kSucceeded);
  CHECK(end_and_cancel(start(spec, "n1", 0), 3) == Outcome::kFailed);
  spec.retries = 1;  // it would run again, and does not
  CHECK(end_and_cancel(start(spec, "n1", 0), 3) == Outcome::kCancelled);
  const JobId stopped = start(spec, "n1", 0);
  command(CancelJob{stopped, "ann"});
  exit(stopped);
  CHECK(state.finished(stopped)->outcome == Outcome::kCancelled);
}

}  // namespace berth::control

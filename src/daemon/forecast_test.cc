// A forecast says what the server then does, and stores nothing.

#include "daemon/forecast.h"

#include <doctest/doctest.h>

#include <vector>

#include "support/fleet_fixture.h"

namespace berth::daemon {

namespace {

struct Forecasts : FleetFixture {
  Forecasts() {
    std::vector<QueueConfig> queues{queue("a"), queue("b")};
    for (QueueConfig& one : queues) one.guaranteed.gpu_milli = 4 * kMilli;
    command(ApplyConfig{config(queues), "op"});
    command(RegisterNode{node("n1", 8)});
  }

  Result<api::Forecast> of(const Command& command) {
    auto copy = state::State::load(state.save());
    REQUIRE(copy.has_value());
    const std::uint64_t before = state.digest();
    auto found = forecast(*copy, command, now);
    CHECK_EQ(state.digest(), before);
    return found;
  }
  void pass(std::int64_t seconds) { now.ms += seconds * 1000; }
};

}  // namespace

TEST_CASE_FIXTURE(Forecasts, "forecast: where a job starts at once, and whether it borrows") {
  const auto within = of(SubmitJob{job("a", 2, 2), ""});
  REQUIRE(within.has_value());
  CHECK_EQ(within->job, state.next_job_id());
  CHECK(within->phase == JobPhase::kRunning);
  CHECK_EQ(within->started, 1);
  CHECK_EQ(within->within, true);
  REQUIRE_EQ(within->places.size(), 1);
  CHECK_EQ(within->places[0].node, "n1");
  CHECK_EQ(within->places[0].tasks, 2);
  CHECK_EQ(within->places[0].gpu_milli, 4 * kMilli);
  CHECK_EQ(of(SubmitJob{job("a", 1, 8), ""})->within, false);
}

TEST_CASE_FIXTURE(Forecasts, "forecast: whom a job would preempt and what is lost, as it then happens") {
  const JobId victim = submit(job("a", 1, 8));
  cycle();
  pass(60);
  const auto wanted = of(SubmitJob{job("b", 1, 4), ""});
  REQUIRE(wanted.has_value());
  CHECK(wanted->phase == JobPhase::kPending);
  CHECK_EQ(wanted->started, 0);
  REQUIRE_EQ(wanted->victims.size(), 1);
  CHECK_EQ(wanted->victims[0].job, victim);
  CHECK_EQ(wanted->victims[0].user, "ann");
  CHECK(wanted->victims[0].cause == StopCause::kReclaim);
  CHECK_EQ(wanted->victims[0].unsaved_s, 60);
  REQUIRE_EQ(wanted->places.size(), 1);
  CHECK(state.job(victim)->phase == JobPhase::kRunning);
  submit(job("b", 1, 4));
  cycle();
  CHECK(state.job(victim)->attempt->stopping());
}

TEST_CASE_FIXTURE(Forecasts, "forecast: a change of priority tells what it changes, and of a running job nothing") {
  submit(job("a", 1, 8));
  const JobId waits = submit(job("a", 1, 8));
  cycle();
  pass(60);
  CHECK(of(PrioritizeJob{waits, 0, "op"})->victims.empty());
  const auto first = of(PrioritizeJob{waits, 1000, "op"});
  REQUIRE(first.has_value());
  REQUIRE_EQ(first->victims.size(), 1);
  CHECK(first->victims[0].cause == StopCause::kPreempt);
  const auto running = of(PrioritizeJob{first->victims[0].job, 1000, "op"});
  CHECK_EQ(running->started, 0);
  CHECK(running->places.empty());
}

TEST_CASE_FIXTURE(Forecasts, "forecast: an array tells how many elements start; what is refused is refused") {
  JobSpec array = job("a", 1, 2);
  array.kind = JobKind::kArray;
  array.array_size = 6;
  CHECK_EQ(of(SubmitJob{array, ""})->started, 4);
  JobSpec wrong = job("nope", 1, 2);
  const auto refused = of(SubmitJob{wrong, ""});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kInvalid);
}

}  // namespace berth::daemon

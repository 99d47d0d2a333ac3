#include "state/back_off.h"

#include <doctest/doctest.h>

#include "model/exit_code.h"

namespace berth::state {
namespace {

constexpr std::int64_t kSecondMs = 1000;
constexpr std::int64_t kMinuteMs = 60 * kSecondMs;

// Adds a past attempt of `ran_ms` that began when the previous one ended.
void add_run(JobState& job, std::int64_t ran_ms, Outcome outcome) {
  AttemptRecord attempt;
  attempt.started = job.past.empty() ? Timestamp{kMinuteMs} : job.past.back().ended;
  attempt.ended = attempt.started + ran_ms;
  attempt.outcome = outcome;
  job.past.push_back(attempt);
}

}  // namespace

TEST_CASE("the pause doubles with each short run of one's own, up to five minutes") {
  JobState job;
  for (const std::int64_t pause_s : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    add_run(job, 3 * kSecondMs, Outcome::kFailed);
    CHECK(back_off_ms(job) == pause_s * kSecondMs);
    CHECK(may_evict_from(job) == job.past.back().ended + 16 * pause_s * kSecondMs);
  }
}

TEST_CASE("what berth or a lost node ended is no end of one's own") {
  JobState job;
  add_run(job, kSecondMs, Outcome::kPreempted);
  add_run(job, kSecondMs, Outcome::kNodeLost);
  CHECK(may_evict_from(job) == Timestamp{});
  add_run(job, kSecondMs, Outcome::kFailed);
  const Timestamp failed = job.past.back().ended;
  add_run(job, kMinuteMs, Outcome::kPreempted);
  CHECK(may_evict_from(job) == failed + 16 * kSecondMs);
}

TEST_CASE("a supervisor that died and a machine without means to start a task are pauses of one's own") {
  JobState job;
  for (const std::int64_t pause_s : {1, 2, 4, 8}) {
    add_run(job, kSecondMs, Outcome::kNodeLost);
    job.past.back().code = pause_s % 4 == 0 ? kNodeShortCode : kSupervisorDiedCode;
    CHECK(back_off_ms(job) == pause_s * kSecondMs);
  }
  JobState gang;
  for (const std::int64_t pause_s : {1, 2, 4}) {
    add_run(gang, kSecondMs, Outcome::kNodeLost);
    gang.past.back().code = kNotStartedCode;
    gang.past.back().cause = StopCause::kTaskFailed;  // of its other tasks
    CHECK(back_off_ms(gang) == pause_s * kSecondMs);
  }
  JobState dying;
  for (std::int32_t deaths = 1; deaths < 4; ++deaths) {
    CHECK(supervisor_deaths(dying, Timestamp{}) == deaths);
    add_run(dying, kSecondMs, Outcome::kNodeLost);
    dying.past.back().code = kSupervisorDiedCode;
  }
  add_run(dying, kSecondMs, Outcome::kPreempted);  // is skipped
  CHECK(supervisor_deaths(dying, Timestamp{}) == 4);
  add_run(dying, kSecondMs, Outcome::kFailed);
  CHECK(supervisor_deaths(dying, Timestamp{}) == 1);
}

TEST_CASE("who has run for ten minutes may stop others at once and begins again with the first pause") {
  JobState job;
  add_run(job, kSecondMs, Outcome::kFailed);
  add_run(job, kSecondMs, Outcome::kFailed);
  add_run(job, 10 * kMinuteMs, Outcome::kFailed);
  CHECK(back_off_ms(job) == kSecondMs);
  CHECK(may_evict_from(job) == Timestamp{});
  add_run(job, kSecondMs, Outcome::kFailed);
  CHECK(back_off_ms(job) == 2 * kSecondMs);
}

TEST_CASE(
    "a job that loses nominations preempts again at once the first time, then after pauses that double without end") {
  CHECK(pause_after_lost_nominations_ms(1) == 0);
  std::int64_t pause_ms = 10 * kSecondMs;
  for (std::uint32_t lost = 2; lost < 20; ++lost, pause_ms *= 2)
    CHECK(pause_after_lost_nominations_ms(lost) == pause_ms);
  CHECK(pause_after_lost_nominations_ms(1'000'000) > 100 * 86'400 * kSecondMs);
  JobState job;
  job.evicts_from = Timestamp{5 * kMinuteMs};
  CHECK(may_evict_from(job) == job.evicts_from);
  add_run(job, kSecondMs, Outcome::kFailed);
  CHECK(may_evict_from(job) == std::max(job.evicts_from, job.past.back().ended + 16 * kSecondMs));
}

}  // namespace berth::state

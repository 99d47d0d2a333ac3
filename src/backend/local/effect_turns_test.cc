#include "backend/local/effect_turns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace berth::backend {
namespace {

StartTask start_of(std::uint64_t job, const std::string& user, std::uint64_t family = 0, std::uint32_t task = 0) {
  StartTask start;
  start.key = {JobId(job), 1, task, 1};
  start.user = user;
  start.family = family == 0 ? JobId() : JobId(family);
  return start;
}

// The effects in their order, as "start 1", "stop 1", "forget 1".
std::vector<std::string> drained(EffectTurns& turns) {
  std::vector<std::string> told;
  while (auto effect = turns.pop()) {
    const TaskKey key = std::visit([](const auto& one) { return one.key; }, *effect);
    std::string kind = "start";
    if (std::holds_alternative<KillTask>(*effect)) kind = "stop";
    if (std::holds_alternative<ForgetTask>(*effect)) kind = "forget";
    if (std::holds_alternative<SignalTask>(*effect)) kind = "signal";
    told.push_back(kind + " " + std::to_string(key.job.value()));
  }
  CHECK(turns.empty());
  return told;
}

using Told = std::vector<std::string>;

}  // namespace

TEST_CASE("a start waits for one element of an array of another user, however many there are") {
  EffectTurns turns;
  for (std::uint64_t element = 2; element < 1'000; ++element) turns.push(start_of(element, "mallory", 1));
  turns.push(start_of(5'000, "alice"));
  CHECK(std::get<StartTask>(*turns.pop()).key.job == JobId(2));
  CHECK(std::get<StartTask>(*turns.pop()).key.job == JobId(5'000));
  CHECK(drained(turns).size() == 997);
}

TEST_CASE("jobs of one user take turns with the elements of an array of that user") {
  EffectTurns turns;
  for (std::uint64_t element = 2; element < 6; ++element) turns.push(start_of(element, "alice", 1));
  turns.push(start_of(10, "alice"));
  turns.push(start_of(11, "alice"));
  CHECK(drained(turns) == Told{"start 2", "start 10", "start 11", "start 3", "start 4", "start 5"});
}

TEST_CASE("many jobs of one user are passed as the elements of an array are") {
  EffectTurns turns;
  for (std::uint64_t job = 1; job < 5; ++job) turns.push(start_of(job, "mallory"));
  turns.push(start_of(10, "alice"));
  turns.push(start_of(11, "alice"));
  CHECK(drained(turns) == Told{"start 1", "start 10", "start 2", "start 11", "start 3", "start 4"});
}

TEST_CASE("stops go before starts, and take a start of their own task away") {
  EffectTurns turns;
  for (const std::uint64_t job : {1U, 2U, 3U, 4U}) turns.push(start_of(job, "alice"));
  turns.push(KillTask{{JobId(2), 1, 0, 1}, "n1", 0});
  turns.push(SignalTask{{JobId(3), 1, 0, 1}, "n1", 15, StopCause::kUser});
  turns.push(KillTask{{JobId(9), 1, 0, 1}, "n1", 0});
  turns.push(ForgetTask{{JobId(9), 1, 0, 1}, "n1"});
  CHECK(drained(turns) == Told{"stop 2", "signal 3", "stop 9", "forget 9", "start 1", "start 4"});
}

TEST_CASE("a signal of a user goes right behind the start that waits") {
  EffectTurns turns;
  for (const std::uint64_t job : {1U, 2U, 3U}) turns.push(start_of(job, "alice"));
  turns.push(SignalTask{{JobId(2), 1, 0, 1}, "n1", 10, {}});
  CHECK(drained(turns) == Told{"start 1", "start 2", "signal 2", "start 3"});
}

TEST_CASE("a task that is told to start again starts once, also where it has ended meanwhile") {
  EffectTurns turns;
  for (int time = 0; time < 2; ++time) {
    for (const std::uint64_t job : {1U, 2U}) turns.push(start_of(job, "alice"));
  }
  CHECK(std::get<StartTask>(*turns.pop()).key.job == JobId(1));
  turns.push(start_of(1, "alice"));  // it is told after the first one was taken
  turns.push(ForgetTask{{JobId(1), 1, 0, 1}, "n1"});
  CHECK(drained(turns) == Told{"forget 1", "start 2"});
}

TEST_CASE("starts have their turn beside signals without end") {
  EffectTurns turns;
  turns.push(start_of(1, "alice"));
  for (int i = 0; i < 100; ++i) turns.push(SignalTask{{JobId(9), 1, 0, 1}, "n1", 10, {}});
  const Told all = drained(turns);
  CHECK(std::find(all.begin(), all.end(), "start 1") - all.begin() == 16);
}

TEST_CASE("tasks of one job start in their order") {
  EffectTurns turns;
  for (std::uint32_t task = 0; task < 4; ++task) turns.push(start_of(7, "alice", 0, task));
  for (std::uint32_t task = 0; task < 4; ++task) CHECK(std::get<StartTask>(*turns.pop()).key.task == task);
}

}  // namespace berth::backend

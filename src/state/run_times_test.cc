#include "state/run_times.h"

#include <doctest/doctest.h>

#include "base/codec.h"
#include "base/random.h"

namespace berth::state {
namespace {

JobSpec job_of(const std::string& user, const std::string& name, std::int32_t gpus, const std::string& queue = "q") {
  JobSpec spec;
  spec.user = user;
  spec.name = name;
  spec.queue = queue;
  TaskGroup group;
  group.request.gpus = gpus;
  spec.groups.push_back(group);
  return spec;
}

void learn(RunTimes& times, const JobSpec& spec, std::initializer_list<std::int64_t> seconds) {
  for (const std::int64_t one : seconds) times.learn(spec, one);
}

TEST_CASE("what is most alike and was seen often enough is asked first") {
  RunTimes times;
  const JobSpec mine = job_of("ann", "train-1", 8);
  CHECK_FALSE(times.quantile(mine, 50).has_value());
  learn(times, job_of("bob", "other", 1, "r"), {10, 10, 10});
  CHECK(times.quantile(mine, 50) == LearnedRunTime{10, Likeness::kAny, 3});
  learn(times, job_of("bob", "other", 1), {20, 20, 20});
  CHECK(times.quantile(mine, 50) == LearnedRunTime{20, Likeness::kQueue, 3});
  learn(times, job_of("bob", "other", 8), {30, 30, 30});
  CHECK(times.quantile(mine, 50) == LearnedRunTime{30, Likeness::kQueueAndSize, 3});
  learn(times, job_of("ann", "other", 1), {40, 40, 40});
  CHECK(times.quantile(mine, 50) == LearnedRunTime{40, Likeness::kUser, 3});
  learn(times, job_of("ann", "other", 8), {50, 50, 50});
  CHECK(times.quantile(mine, 50) == LearnedRunTime{50, Likeness::kUserAndSize, 3});
  learn(times, job_of("ann", "train-77", 8), {60, 60, 60});
  CHECK(times.quantile(mine, 50) == LearnedRunTime{60, Likeness::kName, 3});
}

TEST_CASE("an estimate is a run time that was seen, by nearest rank") {
  RunTimes times;
  const JobSpec spec = job_of("ann", "a", 1);
  learn(times, spec, {40, 10, 30, 20});
  CHECK(times.quantile(spec, 25)->seconds == 10);
  CHECK(times.quantile(spec, 26)->seconds == 20);
  CHECK(times.quantile(spec, 75)->seconds == 30);
  CHECK(times.quantile(spec, 100)->seconds == 40);
}

TEST_CASE("of a job that runs already, only those that ran longer tell") {
  RunTimes times;
  const JobSpec spec = job_of("ann", "a", 1);
  learn(times, spec, {10, 20, 30, 40, 50});
  CHECK(times.quantile(spec, 50, 20) == LearnedRunTime{40, Likeness::kName, 3});
  CHECK_FALSE(times.quantile(spec, 50, 30).has_value());
}

TEST_CASE("the latest run times replace the oldest") {
  RunTimes times;
  const JobSpec spec = job_of("ann", "a", 1);
  for (std::size_t i = 0; i < kRunsRemembered; ++i) times.learn(spec, 1);
  for (std::size_t i = 0; i < kRunsRemembered; ++i) times.learn(spec, 2);
  CHECK(times.quantile(spec, 1)->seconds == 2);
}

TEST_CASE("the memory is bounded, what was not added to for longest goes first, and the cluster stays known") {
  RunTimes times;
  const JobSpec first = job_of("first", "a", 3, "first");
  learn(times, first, {7, 7, 7});
  CHECK(times.quantile(first, 50)->likeness == Likeness::kName);
  for (std::size_t i = 0; i < kLikenessesRemembered; ++i) times.learn(job_of("u" + std::to_string(i), "a", 1), 5);
  CHECK(times.size() == kLikenessesRemembered);
  CHECK(times.quantile(first, 50) == LearnedRunTime{5, Likeness::kAny, kRunsRemembered});
  CHECK_FALSE(times.audit().has_value());
}

TEST_CASE("saved and loaded, it learns on as if it had never stopped") {
  Random random(7);
  RunTimes live;
  RunTimes loaded;
  for (int i = 0; i < 2000; ++i) {
    const JobSpec spec = job_of("u" + std::to_string(random.below(9)), "n", static_cast<std::int32_t>(random.below(4)));
    const auto seconds = static_cast<std::int64_t>(random.below(100'000));
    live.learn(spec, seconds);
    loaded.learn(spec, seconds);
    if (i % 97 == 0) {
      const auto saved = loaded.save();
      loaded = RunTimes();
      REQUIRE(loaded.load(saved));
    }
    REQUIRE(encode(live.save()) == encode(loaded.save()));
  }
}

TEST_CASE("a damaged list is refused") {
  RunTimes times;
  CHECK_FALSE(times.load({{1, 1, {5}}, {1, 2, {5}}}));
  CHECK_FALSE(RunTimes().load({{1, 1, {5}}, {2, 1, {5}}}));
  CHECK_FALSE(RunTimes().load({{1, 1, {}}}));
  CHECK(RunTimes().load({{1, 1, {5}}, {2, 2, {5}}}));
}

}  // namespace
}  // namespace berth::state

#include "state/attained_service.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "explain/why.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

// One node with eight GPUs. Jobs move to the next level at 100 and at 1000 GPU-seconds, and are promoted after an hour.
struct ServedFleet : FleetFixture {
  ServedFleet() {
    configure([](ClusterConfig&) {});
  }

  template <class Change>
  void configure(Change change) {
    QueueConfig served = queue("a");
    served.attained_service = AttainedServiceConfig{{100, 1000}, 3600};
    ClusterConfig all = config({served, queue("b")});
    change(all);
    command(ApplyConfig{all, "op"});
    if (state.nodes().empty()) command(RegisterNode{node("n1", 8)});
  }

  static JobSpec saving(std::int32_t gpus, const std::string& in = "a") {
    JobSpec spec = job(in, 1, gpus);
    spec.checkpoint.on_signal = true;
    return spec;
  }
  JobId started(const JobSpec& spec) {
    const JobId id = submit(spec);
    cycle();
    REQUIRE(runs(id));
    return id;
  }
  bool stops(JobId id) const { return state.job(id)->phase == JobPhase::kStopping; }
  // The job that was asked to leave exits, and a cycle runs.
  void leave(JobId id) {
    exit(id, 0);
    cycle();
  }
  std::int32_t level(JobId id) const {
    const state::JobState& one = *state.job(id);
    return state::level_of(state.queue(one.queue), one, now);
  }
};

}  // namespace

TEST_CASE_FIXTURE(ServedFleet, "a job falls a level at each threshold of GPUs times time") {
  const JobId two = started(saving(2));
  CHECK_EQ(level(two), 1);
  now = now + 49'999;
  CHECK_EQ(level(two), 1);
  now = now + 1;
  CHECK_EQ(level(two), 2);
  now = now + 450'000;
  CHECK_EQ(level(two), 3);
  CHECK_EQ(state::service_of(*state.job(two), now), 1000 * kMilli * 1000);
}

TEST_CASE_FIXTURE(ServedFleet, "who has had less stops who has had more, as soon as that is so, and not before") {
  const JobId old = started(saving(8));
  const JobId fresh = submit(saving(1));
  const Plan plan = cycle();
  CHECK_FALSE(stops(old));
  CHECK(plan.reevaluate_at == now + 12'500);
  now = now + 12'500;
  cycle();
  CHECK(stops(old));
  leave(old);
  CHECK(runs(fresh));
  CHECK_EQ(level(old), 2);
  // The old job has had more service: it does not preempt the other, and goes on when there is room.
  now = now + 1000;
  cycle();
  CHECK(runs(fresh));
  exit(fresh, 0);
  cycle();
  CHECK(runs(old));
}

TEST_CASE_FIXTURE(ServedFleet, "nobody whose work would be lost is stopped for it, nor before its minimum run time") {
  SUBCASE("it does not save") {
    const JobId old = started(job("a", 1, 8));
    now = now + 100'000;
    submit(saving(1));
    cycle();
    CHECK_FALSE(stops(old));
  }
  SUBCASE("it is too young") {
    configure([](ClusterConfig& config) { config.scheduling.min_runtime_s = 60; });
    const JobId old = started(saving(8));
    submit(saving(1));
    now = now + 59'999;
    CHECK(cycle().reevaluate_at == now + 1);
    CHECK_FALSE(stops(old));
    now = now + 1;
    cycle();
    CHECK(stops(old));
  }
  SUBCASE("preemption is turned off") {
    configure([](ClusterConfig& config) { config.scheduling.preempt = false; });
    const JobId old = started(saving(8));
    now = now + 100'000;
    submit(saving(1));
    cycle();
    CHECK_FALSE(stops(old));
  }
}

TEST_CASE_FIXTURE(ServedFleet, "levels count inside one queue and one priority only") {
  const JobId old = started(saving(8));
  now = now + 100'000;
  submit(saving(1, "b"));
  cycle();
  CHECK_FALSE(stops(old));
  JobSpec humble = saving(1);
  humble.priority_class = "dev";
  submit(humble);
  cycle();
  CHECK_FALSE(stops(old));
  submit(saving(1));
  cycle();
  CHECK(stops(old));
}

TEST_CASE_FIXTURE(ServedFleet, "the line is by level, then by arrival; the levels of what waits stand still") {
  const JobId wall = started(job("a", 1, 8));
  const JobId first = submit(saving(8));
  const JobId second = submit(saving(8));
  exit(wall, 0);
  cycle();
  REQUIRE(runs(first));
  now = now + 20'000;
  cycle();
  REQUIRE(stops(first));
  const JobId third = submit(saving(8));
  leave(first);
  CHECK(runs(second));
  const auto line = explain::why(state, first, now, explain::Viewer::sees_all()).answer.line;
  REQUIRE(line);
  CHECK(line->text.find("less GPU time so far") != std::string::npos);
  exit(second, 0);
  cycle();
  CHECK(runs(third));
  CHECK_FALSE(runs(first));
}

TEST_CASE_FIXTURE(ServedFleet, "who has waited long enough goes before all levels and is stopped by none") {
  const JobId wall = started(saving(8));
  const JobId patient = submit(saving(8));
  now = now + 3'600'000;
  const JobId newer = submit(saving(8));
  cycle();
  REQUIRE(stops(wall));
  leave(wall);
  CHECK(runs(patient));
  CHECK_EQ(level(patient), 0);
  now = now + 10'000'000;
  cycle();
  CHECK_FALSE(stops(patient));
  CHECK_EQ(level(patient), 0);
  CHECK_FALSE(runs(newer));
}

TEST_CASE_FIXTURE(ServedFleet, "time held back by the user or by an earliest start is no waiting") {
  started(job("a", 1, 8));
  const JobId held = submit(saving(8));
  JobSpec later = saving(8);
  later.earliest_start = now + 3'600'000;
  const JobId early = submit(later);
  now = now + 1'800'000;
  command(HoldJob{held, true, "ann"});
  now = now + 7'200'000;
  command(HoldJob{held, false, "ann"});
  CHECK_EQ(state::waited_ms(*state.job(held), now), 1'800'000);
  CHECK_EQ(level(held), 1);
  CHECK_EQ(state::waited_ms(*state.job(early), now), 5'400'000);
  now = now + 1'800'000;
  CHECK_EQ(level(held), 0);
}

TEST_CASE_FIXTURE(ServedFleet, "service and waits outlive a restart, and a new configuration takes them as they are") {
  const JobId old = started(saving(8));
  submit(saving(8));
  now = now + 20'000;
  cycle();
  leave(old);
  auto loaded = state::State::load(state.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->digest(), state.digest());
  CHECK_EQ(state::service_of(*loaded->job(old), now), state::service_of(*state.job(old), now));
  CHECK(state.queue(state.job(old)->queue).pending == loaded->queue(state.job(old)->queue).pending);
  configure([](ClusterConfig& config) { config.queues[0].attained_service->thresholds_gpu_s = {1000}; });
  CHECK_EQ(level(old), 1);
  configure([](ClusterConfig& config) { config.queues[0].attained_service.reset(); });
  CHECK_EQ(level(old), 0);
  CHECK_EQ(state.audit().value_or(""), "");
}

// The termination that sched/preempt/preempt.h argues: without new submissions every job ends, though each eviction
// costs its victim a second of work. A promoted job is never evicted.
TEST_CASE("levels and promotions stop nobody for ever") {
  std::int64_t stops = 0;
  std::int64_t promoted = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    FleetFixture fleet;
    std::vector<QueueConfig> queues;
    for (const char* path : {"a", "b"}) {
      QueueConfig queue = FleetFixture::queue(path);
      const std::int64_t first = random.between(1, 60);
      queue.attained_service =
          AttainedServiceConfig{{first, first * 4}, random.chance(800) ? random.between(1, 200) : 0};
      if (random.chance(500)) queue.guaranteed.gpu_milli = random.between(1, 4) * 1000;
      queues.push_back(queue);
    }
    ClusterConfig config = FleetFixture::config(queues);
    config.scheduling.min_runtime_s = random.between(0, 3);
    fleet.command(ApplyConfig{config, "op"});
    for (const char* name : {"n1", "n2"}) fleet.command(RegisterNode{FleetFixture::node(name, 4)});
    std::map<JobId, std::int64_t> left_s;
    std::map<JobId, std::int64_t> stopped;
    for (int second = 0; second < 20'000 && (second < 60 || !left_s.empty()); ++second) {
      fleet.now = fleet.now + 1000;
      const std::set<JobId> running = fleet.state.running();
      for (const JobId id : running) {
        if (fleet.state.job(id)->phase == JobPhase::kStopping) {
          ++left_s.at(id);
          fleet.exit(id, 0);
        } else if (--left_s.at(id) <= 0) {
          fleet.exit(id, 0);
          left_s.erase(id);
        }
      }
      if (second < 60 && random.chance(500)) {
        JobSpec spec = FleetFixture::job(random.chance(500) ? "a" : "b", random.chance(300) ? 2 : 1,
                                         static_cast<std::int32_t>(random.between(1, 4)));
        spec.checkpoint.on_signal = random.chance(800);
        left_s.emplace(fleet.submit(spec), random.between(1, 80));
      }
      int cycles = 0;
      while (!fleet.cycle().decisions.empty()) REQUIRE_LT(++cycles, 50);
      for (const JobId id : fleet.state.running()) {
        const state::JobState& job = *fleet.state.job(id);
        if (!job.attempt->stop || job.attempt->stop->began != fleet.now) continue;
        ++stops;
        ++stopped[id];
        if (job.attempt->stop->cause != StopCause::kPreempt) continue;
        REQUIRE(job.spec.checkpoint.on_signal);
        REQUIRE_GT(state::level_of(fleet.state.queue(job.queue), job, fleet.now), 0);
      }
      for (const auto& [id, left] : left_s) {
        const state::JobState& job = *fleet.state.job(id);
        promoted += state::level_of(fleet.state.queue(job.queue), job, fleet.now) == 0;
      }
    }
    CHECK(left_s.empty());
    REQUIRE_EQ(fleet.state.audit().value_or(""), "");
  }
  CHECK_GT(stops, 100);
  CHECK_GT(promoted, 100);
}

}  // namespace berth

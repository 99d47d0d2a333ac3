#include "sched/backfill/backfill.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "explain/why.h"
#include "support/fleet_fixture.h"
#include "support/random_rounds.h"

namespace berth {
namespace {

bool starts_at_once(FleetFixture& fleet, const JobSpec& spec) {
  const JobId id = fleet.submit(spec);
  fleet.cycle();
  return fleet.runs(id);
}

// Every blocked job gets a reservation, by estimates too.
ClusterConfig holding_at_once() {
  ClusterConfig config = FleetFixture::config({FleetFixture::queue("a")});
  config.scheduling.backfill_after_s = 0;
  return config;
}

// One node with eight GPUs, six of them taken for 100 s, and a job that requests all eight.
struct BlockedFleet : FleetFixture {
  BlockedFleet() {
    QueueConfig sure = queue("sure");
    sure.guaranteed.gpu_milli = 2000;
    command(ApplyConfig{config({queue("a"), sure}), "op"});
    command(RegisterNode{node("n1", 8)});
    running = submit(limited("a", 6, 100));
    cycle();
    large = submit(limited("a", 8, 100));
    cycle();
  }

  static JobSpec limited(const std::string& queue, std::int32_t gpus, std::int64_t seconds) {
    JobSpec spec = job(queue, 1, gpus);
    spec.time_limit_s = seconds;
    return spec;
  }

  bool starts(const JobSpec& spec) { return starts_at_once(*this, spec); }

  JobId running;
  JobId large;
};

}  // namespace

TEST_CASE_FIXTURE(BlockedFleet,
                  "a start is held for the first that is blocked, when what runs is expected to be gone") {
  const auto& hold = state.job(large)->reservation;
  REQUIRE(hold.has_value());
  CHECK(hold->start == now + 100'000);
  CHECK_EQ(hold->placements.front().gpus.size(), 8);
  CHECK_EQ(state.audit().value_or(""), "");
}

TEST_CASE_FIXTURE(BlockedFleet,
                  "who is gone before the held start slips in front, who is not waits and is told for whom") {
  CHECK(starts(limited("a", 1, 100)));
  const JobId longer = submit(limited("a", 1, 101));
  const JobId unknown = submit(job("a", 1, 1));
  cycle();
  for (const JobId id : {longer, unknown}) {
    CHECK_FALSE(runs(id));
    const Reason reason = explain::why(state, id, now, explain::Viewer::sees_all()).reason;
    CHECK(reason.code == ReasonCode::kWouldDelayReservation);
    CHECK(reason.job == large);
    CHECK_EQ(reason.limit, state.job(large)->reservation->start.ms);
  }
  now = now + 1;
  CHECK_FALSE(starts(limited("a", 1, 100)));
  CHECK(starts(limited("a", 1, 99)));
}

TEST_CASE_FIXTURE(BlockedFleet, "a service is never expected to be gone") {
  JobSpec service = job("a", 1, 1);
  service.kind = JobKind::kService;
  submit(service);
  cycle();
  CHECK_EQ(state.running().size(), 1);
}

TEST_CASE_FIXTURE(BlockedFleet, "higher priority and what lies within its guarantee pass a hold") {
  JobSpec urgent = job("a", 1, 1);
  urgent.priority_class = "production";
  CHECK(starts(urgent));
  CHECK(starts(job("sure", 1, 1)));
}

TEST_CASE_FIXTURE(BlockedFleet, "what was learned lets a job of unknown length slip in front") {
  for (int i = 0; i < 3; ++i) {
    const JobId quick = submit(limited("a", 1, 50));
    cycle();
    now = now + 5000;
    exit(quick, 0);
  }
  CHECK(starts(job("a", 1, 1)));
}

TEST_CASE_FIXTURE(BlockedFleet,
                  "a time limit that ends before the held start would start it now, one second more would not") {
  const JobId unknown = submit(job("a", 1, 1));
  cycle();
  const auto changes = explain::why(state, unknown, now, explain::Viewer::sees_all()).remedies;
  const auto found = std::find_if(changes.begin(), changes.end(), [](const explain::Remedy& change) {
    return change.kind == explain::RemedyKind::kTimeLimit;
  });
  REQUIRE(found != changes.end());
  CHECK_EQ(found->to, 100);
  CHECK(starts(limited("a", 1, found->to)));
  CHECK_FALSE(starts(limited("a", 1, found->to + 1)));
}

TEST_CASE_FIXTURE(BlockedFleet, "a hold is dropped with its job, and with the places") {
  SUBCASE("held by its user") { command(HoldJob{large, true, "ann"}); }
  SUBCASE("cancelled") { command(CancelJob{large, "ann"}); }
  CHECK(state.reservations().empty());
  CHECK(starts(job("a", 1, 1)));
  CHECK_EQ(state.audit().value_or(""), "");
}

TEST_CASE_FIXTURE(BlockedFleet, "holds, and that none were found, outlive a restart") {
  auto loaded = state::State::load(state.save());
  REQUIRE(loaded.has_value());
  CHECK(loaded->reservations() == state.reservations());
  CHECK(loaded->job(large)->reservation->start == state.job(large)->reservation->start);
  CHECK(loaded->starts_sought() == state.starts_sought());
  CHECK_EQ(loaded->digest(), state.digest());
}

TEST_CASE("a steady cycle works out no start and asks nobody behind a hold, however many queues wait there") {
  FleetFixture fleet;
  std::vector<QueueConfig> queues{FleetFixture::queue("big")};
  for (int i = 0; i < 50; ++i) queues.push_back(FleetFixture::queue("q" + std::to_string(i)));
  fleet.command(ApplyConfig{FleetFixture::config(queues), "op"});
  for (const char* name : {"n1", "n2"}) fleet.command(RegisterNode{FleetFixture::node(name, 8)});
  JobSpec first = FleetFixture::job("big", 1, 8);
  first.time_limit_s = 3600;
  fleet.submit(first);
  fleet.cycle();
  JobSpec gang = FleetFixture::job("big", 2, 8);
  gang.time_limit_s = 3600;
  const JobId owner = fleet.submit(gang);
  fleet.cycle();
  REQUIRE(fleet.state.job(owner)->reservation.has_value());
  for (int i = 0; i < 50; ++i) {
    JobSpec slow = FleetFixture::job("q" + std::to_string(i), 1, 1);
    slow.estimate_s = 7200;
    fleet.submit(slow);
  }
  CHECK_EQ(fleet.cycle().refused.size(), 50);
  for (int second = 0; second < 100; ++second) {
    fleet.now = fleet.now + 1000;
    JobSpec quick = FleetFixture::job("big", 1, 1);
    quick.time_limit_s = 10;
    const JobId passing = fleet.submit(quick);
    const Plan plan = fleet.cycle();
    REQUIRE(fleet.runs(passing));
    REQUIRE_EQ(plan.starts_worked_out, 0);
    REQUIRE_LE(plan.scheduling_attempts, 3);
    fleet.cycle();
    fleet.exit(passing, 0);
    const Plan after = fleet.cycle();
    REQUIRE_EQ(after.starts_worked_out, 0);
    REQUIRE_LE(after.nodes_scored, 10);  // a node was freed: classes that wait for places are probed, once for all
  }
  CHECK(fleet.state.running().size() == 1);
}

// What a state remembers of an earlier configuration differs between one that lived through it and one from a
// checkpoint.
TEST_CASE_FIXTURE(FleetFixture, "pools that only an earlier configuration named change no hold") {
  ClusterConfig config = holding_at_once();
  config.pools = {{"x", {}}, {"y", {}}};
  command(ApplyConfig{config, "op"});
  config.pools.clear();
  command(ApplyConfig{config, "op"});
  command(RegisterNode{node("n1", 8)});
  JobSpec limited = job("a", 1, 6);
  limited.time_limit_s = 100;
  submit(limited);
  cycle();
  submit(job("a", 1, 8));
  submit(job("a", 1, 7));
  auto loaded = state::State::load(state.save());
  REQUIRE(loaded.has_value());
  REQUIRE_NE(loaded->pools().size(), state.pools().size());
  const Plan from_checkpoint = sched::run_cycle(*loaded, now);
  CHECK_EQ(control::plan_hash(cycle()), control::plan_hash(from_checkpoint));
  CHECK_EQ(state.reservations().size(), 1);
}

TEST_CASE_FIXTURE(FleetFixture, "starts that cannot be held are looked for once a minute") {
  command(ApplyConfig{holding_at_once(), "op"});
  command(RegisterNode{node("n1", 8)});
  submit(job("a", 1, 6));
  cycle();
  submit(job("a", 1, 8));
  std::uint64_t worked_out = 0;
  for (int second = 0; second < 120; ++second) {
    now = now + 1000;
    worked_out += cycle().starts_worked_out;
  }
  CHECK_EQ(worked_out, 2);
}

TEST_CASE_FIXTURE(BlockedFleet, "with holds turned off those that are held end, and whoever fits starts") {
  ClusterConfig off = state.config();
  off.scheduling.backfill_reservations = 0;
  command(ApplyConfig{off, "op"});
  cycle();
  CHECK(state.reservations().empty());
  CHECK(starts(job("a", 1, 1)));
}

TEST_CASE_FIXTURE(BlockedFleet, "the owner starts on what was held and the hold is gone") {
  const Timestamp reserved = state.job(large)->reservation->start;
  now = now + 60'000;
  exit(running, 0);
  cycle();
  REQUIRE(runs(large));
  CHECK(state.reservations().empty());
  CHECK(state.job(large)->attempt->reserved_start == reserved);
}

TEST_CASE_FIXTURE(
    FleetFixture,
    "a reservation slips with an estimate that was too short, and the first reserved start is remembered") {
  command(ApplyConfig{holding_at_once(), "op"});
  command(RegisterNode{node("n1", 8)});
  JobSpec guessed = job("a", 1, 6);
  guessed.estimate_s = 100;
  const JobId running = submit(guessed);
  cycle();
  const JobId large = submit(job("a", 1, 8));
  Timestamp due = cycle().reevaluate_at;
  const Timestamp reserved = state.job(large)->reservation->start;
  CHECK(reserved == now + 100'000);
  CHECK(due <= reserved);
  now = reserved;
  due = cycle().reevaluate_at;
  REQUIRE(state.job(large)->reservation.has_value());
  CHECK(state.job(large)->reservation->start > reserved);
  CHECK(state.job(large)->reservation->first_start == reserved);
  CHECK(due > now);
  now = now + 30'000;
  exit(running, 0);
  cycle();
  REQUIRE(runs(large));
  CHECK_EQ(state.job(large)->attempt->started - *state.job(large)->attempt->reserved_start, 30'000);
}

TEST_CASE_FIXTURE(FleetFixture, "estimates hold a start for who has waited long enough, and not for the others") {
  ClusterConfig patient = config({queue("a")});
  patient.scheduling.backfill_after_s = 3600;
  command(ApplyConfig{patient, "op"});
  command(RegisterNode{node("n1", 8)});
  JobSpec guessed = job("a", 1, 6);
  guessed.estimate_s = 7200;
  submit(guessed);
  cycle();
  const JobId large = submit(job("a", 1, 8));
  cycle();
  CHECK_FALSE(state.job(large)->reservation.has_value());
  now = now + 3'599'999;
  CHECK_EQ(cycle().starts_worked_out, 0);
  now = now + 60'000;
  cycle();
  REQUIRE(state.job(large)->reservation.has_value());
  CHECK(state.job(large)->reservation->start == now + (7'200'000 - 3'659'999));
  CHECK_FALSE(starts_at_once(*this, job("a", 1, 2)));
}

TEST_CASE_FIXTURE(FleetFixture, "of who has not waited, only what ends for certain counts") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node("n1", 8)});
  JobSpec guessed = job("a", 1, 2);
  guessed.estimate_s = 60;
  submit(guessed);
  JobSpec limited = job("a", 1, 4);
  limited.time_limit_s = 600;
  submit(limited);
  cycle();
  const JobId all = submit(job("a", 1, 8));
  const JobId six = submit(job("a", 1, 6));
  cycle();
  CHECK_FALSE(state.job(all)->reservation.has_value());
  REQUIRE(state.job(six)->reservation.has_value());
  CHECK(state.job(six)->reservation->start == now + 600'000);
}

TEST_CASE_FIXTURE(FleetFixture, "where nothing is known of what runs no start is held") {
  command(ApplyConfig{holding_at_once(), "op"});
  command(RegisterNode{node("n1", 8)});
  submit(job("a", 1, 6));
  cycle();
  const JobId large = submit(job("a", 1, 8));
  const JobId small = submit(job("a", 1, 1));
  cycle();
  CHECK_FALSE(state.job(large)->reservation.has_value());
  CHECK(runs(small));
}

// EASY's guarantee (Mu'alem and Feitelson, section 2): if no job runs longer than it said, backfilling never delays a
// job with a reservation. Maintenance windows planned before do not delay it either.
TEST_CASE("where time limits are kept no held start slips, and loaded from a checkpoint the cycle decides the same") {
  std::int64_t held = 0;
  std::uint64_t held_beside_windows = 0;
  std::int64_t passed = 0;
  const auto lives = static_cast<std::uint64_t>(random_rounds(80, 400));
  for (std::uint64_t seed = 0; seed < lives; ++seed) {
    Random random(seed);
    FleetFixture fleet;
    fleet.command(ApplyConfig{FleetFixture::config({FleetFixture::queue("a"), FleetFixture::queue("b")}), "op"});
    for (const char* name : {"n1", "n2", "n3"}) fleet.command(RegisterNode{FleetFixture::node(name, 4)});
    for (int windows = seed % 2 == 0 ? 0 : 3; windows > 0; --windows) {
      PlanMaintenance window;
      window.nodes = {random.chance(500) ? "n1" : "n2"};
      window.from = fleet.now + random.between(10, 200) * 1000;
      window.for_s = random.between(5, 60);
      fleet.command(window);
    }
    std::map<JobId, std::int64_t> run_s;
    for (int second = 0; second < 300; ++second) {
      fleet.now = fleet.now + 1000;
      control::Batch batch(fleet.state, fleet.now);
      control::reconcile(batch);  // windows begin and end
      const std::set<JobId> running = fleet.state.running();
      for (const JobId id : running) {
        if (fleet.now - fleet.state.job(id)->attempt->started >= run_s.at(id) * 1000) fleet.exit(id, 0);
      }
      if (second < 150 && random.chance(400)) {
        const bool large = random.chance(200);
        JobSpec spec = FleetFixture::job(random.chance(500) ? "a" : "b", large ? 3 : 1,
                                         large ? 3 : static_cast<std::int32_t>(random.between(1, 4)));
        spec.time_limit_s = random.between(2, 40);
        run_s.emplace(fleet.submit(spec), random.between(1, spec.time_limit_s - 1));
      }
      for (int i = 0; i < 10; ++i) {
        auto loaded = state::State::load(fleet.state.save());
        REQUIRE(loaded.has_value());
        const Plan from_scratch = sched::run_cycle(loaded.value(), fleet.now);
        const Plan plan = fleet.cycle();
        REQUIRE_EQ(control::plan_hash(plan), control::plan_hash(from_scratch));
        if (plan.decisions.empty()) break;
      }
      REQUIRE_EQ(fleet.state.audit().value_or(""), "");
      const std::set<JobId> now_running = fleet.state.running();
      for (const JobId id : now_running) {
        const state::AttemptState& attempt = *fleet.state.job(id)->attempt;
        if (attempt.started != fleet.now) continue;
        passed += !fleet.state.reservations().empty() && *fleet.state.reservations().begin() < id;
        if (!attempt.reserved_start) continue;
        ++held;
        held_beside_windows += seed % 2;
        CHECK_MESSAGE(attempt.started <= *attempt.reserved_start, "seed " << seed << " job " << id.value());
      }
    }
  }
  CHECK(held > static_cast<std::int64_t>(lives));
  CHECK(held_beside_windows > lives / 2);
  CHECK(passed > static_cast<std::int64_t>(lives));
}

}  // namespace berth

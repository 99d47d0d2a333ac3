// Terms of eviction of queues: which queue's terms count, when a preemptor is evaluated again, and what is counted.

#include <doctest/doctest.h>

#include <algorithm>
#include <variant>

#include "sched/preempt/eviction_limits.h"
#include "sched/preempt/preempt.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

// A queue that owns everything; a lab with two queues below it, and one queue beside it. These three borrow.
struct Lab : FleetFixture {
  Lab() {
    QueueConfig owner = queue("own");
    owner.guaranteed.gpu_milli = 8000;
    QueueConfig lab = queue("lab");
    lab.eviction = {7200, 10'800, 120, 2};
    QueueConfig interns = queue("lab/interns");
    interns.eviction.min_runtime_s = 0;
    QueueConfig papers = queue("lab/papers");
    papers.eviction.evictions_per_hour = 1;
    cluster = config({owner, lab, interns, papers, queue("free")});
    cluster.scheduling.min_runtime_s = 600;
    cluster.scheduling.default_grace_s = 45;
    cluster.scheduling.backfill_reservations = 0;  // the search for reservations would cause extra cycles
    command(ApplyConfig{cluster, "op"});
    command(RegisterNode{node("n1", 8)});
  }

  const state::EvictionTerms& terms(const std::string& path) const { return state.queue_at(path)->eviction; }
  std::string of(QueueId queue) const { return state.queue(queue).path; }
  std::int64_t left(const std::string& path) const {
    const state::QueueState& queue = *state.queue_at(path);
    return queue.evictions.left(queue.eviction.evictions_per_hour, now);
  }

  JobId start(const std::string& queue, std::int32_t gpus) {
    const JobId id = submit(job(queue, 1, gpus));
    cycle();
    REQUIRE(runs(id));
    return id;
  }
  bool stops(JobId id) const { return state.job(id)->attempt && state.job(id)->attempt->stopping(); }
  // The owner reclaims one GPU; the victim leaves.
  JobId stopped_for_owner() {
    submit(job("own", 1, 1));
    const Plan plan = cycle();
    JobId victim;
    for (const Decision& decision : plan.decisions) {
      const auto* evict = std::get_if<EvictDecision>(&decision);
      if (evict == nullptr) continue;
      REQUIRE_EQ(evict->victims.size(), 1);
      victim = evict->victims.front();
    }
    REQUIRE(victim.valid());
    exit(victim, 143);
    cycle();
    return victim;
  }

  ClusterConfig cluster;
};

std::size_t evictions_of(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.decisions.begin(), plan.decisions.end(),
                    [](const Decision& decision) { return std::holds_alternative<EvictDecision>(decision); }));
}

}  // namespace

TEST_CASE("terms: each key is the nearest queue's that says so, and a rate is nobody else's") {
  Lab lab;
  CHECK_EQ(lab.terms("free").min_runtime_s, 600);
  CHECK_EQ(lab.terms("free").min_runtime_of, lab.state.root());
  CHECK_EQ(lab.terms("free").grace_s, 45);
  CHECK_EQ(lab.terms("lab/interns").min_runtime_s, 0);
  CHECK_EQ(lab.of(lab.terms("lab/interns").min_runtime_of), "lab/interns");
  CHECK_EQ(lab.terms("lab/interns").cooldown_s, 10'800);
  CHECK_EQ(lab.of(lab.terms("lab/interns").cooldown_of), "lab");
  CHECK_EQ(lab.terms("lab/papers").min_runtime_s, 7200);
  CHECK_EQ(lab.terms("lab/interns").evictions_per_hour, 0);
  const QueueId papers = lab.state.queue_at("lab/papers")->id;
  CHECK_EQ(lab.of(lab.state.limits_evictions(papers)), "lab/papers");
  CHECK_EQ(lab.of(lab.state.next_limit(papers)), "lab");
  CHECK_FALSE(lab.state.next_limit(lab.state.queue_at("lab")->id).valid());
  CHECK_EQ(lab.of(lab.state.limits_evictions(lab.state.queue_at("lab/interns")->id)), "lab");
  CHECK_FALSE(lab.state.limits_evictions(lab.state.queue_at("free")->id).valid());
}

TEST_CASE("terms: a queue that says nothing any more has its parent's, and what runs has them at once") {
  Lab lab;
  const JobId paper = lab.start("lab/papers", 8);
  CHECK_EQ(sched::least_run_s(lab.state, *lab.state.job(paper)), 7200);
  CHECK_EQ(lab.state.grace_ms(*lab.state.job(paper)), 120'000);
  lab.cluster.queues[1].eviction = {};
  lab.command(ApplyConfig{lab.cluster, "op"});
  CHECK_EQ(sched::least_run_s(lab.state, *lab.state.job(paper)), 600);
  CHECK_EQ(lab.state.grace_ms(*lab.state.job(paper)), 45'000);
}

TEST_CASE("terms: a claim is asked again when the first of whom it needs has run the minimum of its queue") {
  Lab lab;
  lab.start("lab/papers", 4);
  lab.now = lab.now + 60'000;
  const JobId guest = lab.start("free", 4);
  const Timestamp began = lab.now;
  lab.now = lab.now + 60'000;
  const JobId owner = lab.submit(FleetFixture::job("own", 1, 4));
  Plan plan = lab.cycle();
  CHECK_EQ(evictions_of(plan), 0);
  CHECK_EQ(plan.reevaluate_at, began + 600'000);
  lab.now = plan.reevaluate_at;
  plan = lab.cycle();
  CHECK(lab.stops(guest));
  CHECK(lab.state.job(owner)->nomination.has_value());
  // The next owner's job waits for the victim in papers, whose min_runtime by the lab's terms is two hours.
  lab.exit(guest, 143);
  lab.cycle();
  lab.submit(FleetFixture::job("own", 1, 4));
  plan = lab.cycle();
  CHECK_EQ(plan.reevaluate_at, Timestamp{1'000'000} + 7'200'000);
}

TEST_CASE("terms: a rate counts what is stopped below the queue, until an hour is over") {
  Lab lab;
  for (int i = 0; i < 8; ++i) lab.start("lab/interns", 1);
  lab.stopped_for_owner();
  lab.now = lab.now + 600'000;
  CHECK_EQ(lab.left("lab"), 1);
  lab.stopped_for_owner();
  CHECK_EQ(lab.left("lab"), 0);
  const Timestamp first{1'000'000};
  lab.submit(FleetFixture::job("own", 1, 1));
  Plan plan = lab.cycle();
  CHECK_EQ(evictions_of(plan), 0);
  CHECK_EQ(plan.reevaluate_at, first + kHourMs);
  // A checkpoint keeps it.
  auto loaded = state::State::load(lab.state.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->digest(), lab.state.digest());
  CHECK_EQ(evictions_of(sched::run_cycle(*loaded, lab.now)), 0);
  lab.now = plan.reevaluate_at;
  CHECK_EQ(evictions_of(lab.cycle()), 1);
  // A queue that no longer states a rate counts nothing and starts anew.
  lab.cluster.queues[1].eviction.evictions_per_hour = 0;
  lab.command(ApplyConfig{lab.cluster, "op"});
  CHECK(lab.state.queue_at("lab")->evictions.save().empty());
}

TEST_CASE("terms: the rates of all queues on the way to the root hold, and what one cycle stops counts in it") {
  Lab lab;
  const QueueId papers = lab.state.queue_at("lab/papers")->id;
  const QueueId interns = lab.state.queue_at("lab/interns")->id;
  sched::EvictionLimits limits(lab.state, lab.now, nullptr);
  CHECK(limits.take(papers));
  CHECK_FALSE(limits.refused_by().valid());
  CHECK_FALSE(limits.take(papers));
  CHECK_EQ(lab.of(limits.refused_by()), "lab/papers");
  CHECK(limits.take(interns));
  CHECK_FALSE(limits.take(interns));  // the lab's limit of two
  CHECK(limits.take(lab.state.queue_at("free")->id));
  sched::StoppedBelow stopped;
  sched::count_stopped(lab.state, papers, stopped);
  sched::EvictionLimits later(lab.state, lab.now, &stopped);
  CHECK_FALSE(later.take(papers));
  CHECK(later.take(interns));
  CHECK_FALSE(later.take(interns));
}

TEST_CASE("terms: two claims of one cycle stop no more of a queue than its rate lets go") {
  Lab lab;
  for (int i = 0; i < 8; ++i) lab.start("lab/interns", 1);
  for (int i = 0; i < 4; ++i) lab.submit(FleetFixture::job("own", 1, 1));
  std::size_t stopped = 0;
  for (int i = 0; i < 5; ++i) {
    lab.cycle();
    stopped = 0;
    for (const JobId id : lab.state.running()) stopped += lab.stops(id) ? 1U : 0U;
    REQUIRE(stopped <= 2);
  }
  CHECK_EQ(stopped, 2);
  CHECK_EQ(lab.left("lab"), 0);
}

}  // namespace berth

// Counts what a search for victims looks at.

#include <set>

#include "sched/preempt/preempt.h"
#include "sched/preempt/victim_candidates.h"
#include "support/fleet_fixture.h"

namespace berth {

namespace {

// A queue with a guarantee of one node out of four; borrowers in two other queues use all four.
struct Borrowed : FleetFixture {
  Borrowed() {
    QueueConfig owner = queue("owner");
    owner.guaranteed.gpu_milli = 8000;
    ClusterConfig rules = config({owner, queue("plain"), queue("elastic")});
    rules.scheduling.min_runtime_s = 0;
    command(ApplyConfig{rules, "op"});
    for (const char* name : {"n1", "n2", "n3", "n4"}) command(RegisterNode{node(name, 8)});
  }

  void run_plain(int jobs) {
    for (int i = 0; i < jobs; ++i) submit(job("plain", 1, 1));
    cycle();
  }

  sched::SearchStats search(JobId preemptor, std::size_t victims) {
    sched::SearchStats work;
    const std::set<JobId> nobody;
    const auto decision = sched::find_victims({state, now, nobody, 100}, preemptor, work).decision;
    REQUIRE(decision.has_value());
    CHECK_EQ(decision->victims.size(), victims);
    return work;
  }
};

}  // namespace

TEST_CASE("a search for victims looks up none of the jobs that have not grown") {
  Borrowed fleet;
  fleet.run_plain(32);
  REQUIRE_EQ(fleet.state.running().size(), 32);
  const JobId preemptor = fleet.submit(FleetFixture::job("owner", 1, 8));
  CHECK_EQ(fleet.search(preemptor, 8).victims_looked_up, 0);
}

TEST_CASE("of many that run, a search for victims looks up those alone that have grown") {
  Borrowed fleet;
  fleet.run_plain(23);
  JobSpec gang = FleetFixture::job("elastic", 9, 1);
  gang.groups.front().min_count = 1;
  const JobId grown = fleet.submit(gang);
  fleet.cycle();
  fleet.cycle();
  REQUIRE_EQ(fleet.state.job(grown)->attempt->tasks.size(), 9);
  const JobId preemptor = fleet.submit(FleetFixture::job("owner", 1, 1));
  CHECK_EQ(fleet.search(preemptor, 1).victims_looked_up, 1);
}

TEST_CASE("of claimants that wait at one place, all but the first are told from what was gathered for it") {
  Borrowed fleet;
  JobSpec array = FleetFixture::job("plain", 1, 1);
  array.kind = JobKind::kArray;
  array.array_size = 32;
  fleet.submit(array);
  while (fleet.state.running().size() < 32) fleet.cycle();
  const std::set<JobId> nobody;
  sched::SharedVictimCandidates candidates;
  for (const std::uint64_t looked_up : {32UL, 0UL, 0UL}) {
    const JobId preemptor = fleet.submit(FleetFixture::job("owner", 1, looked_up > 0 ? 2 : 1));
    sched::SearchStats work;
    CHECK(sched::find_victims({fleet.state, fleet.now, nobody, 100, &candidates}, preemptor, work).decision);
    CHECK_EQ(work.victims_looked_up, looked_up);
  }
}

}  // namespace berth

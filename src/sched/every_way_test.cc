// Gangs of several groups where every way to spread them is tried, and where that ends.

#include "sched/every_way.h"

#include <string>

#include "sched/fleet_fixture.h"
#include "sched/place.h"

namespace berth {
namespace {

// Nodes of three GPUs, and a gang of two groups with two GPUs a task: no node holds two of them.
struct ThreesAndTwos : FleetFixture {
  explicit ThreesAndTwos(int nodes) {
    command(ApplyConfig{config({queue("a")}), "op"});
    for (int n = 0; n < nodes; ++n) command(RegisterNode{node("n" + std::to_string(n), 3)});
  }

  const state::JobState& gang(std::int32_t first, std::int32_t second) {
    JobSpec spec = job("a", first, 2);
    spec.groups.push_back(spec.groups.front());
    spec.groups[1].name = "more";
    spec.groups[1].count = second;
    spec.groups[1].request.cpu_milli += 1000;
    return *state.job(submit(spec));
  }

  sched::PlaceWork work_for(const state::JobState& job, bool fits) {
    sched::PlaceWork work;
    CHECK_EQ(sched::try_place(state, job, sched::kAllModels, sched::Pools::kAny, work).has_value(), fits);
    return work;
  }
};

}  // namespace

TEST_CASE("what fits no way costs a bounded number of steps, and on many nodes or for too few GPUs none") {
  const auto steps = static_cast<std::size_t>(sched::kMostSteps);
  ThreesAndTwos few(static_cast<int>(sched::kFewNodes));
  CHECK_LT(few.work_for(few.gang(32, 32), true).nodes_scored, steps);
  const std::size_t tried = few.work_for(few.gang(40, 40), false).nodes_scored;
  CHECK_GT(tried, steps);
  CHECK_LT(tried, 8 * steps);
  CHECK_LT(few.work_for(few.gang(60, 60), false).nodes_scored, steps);
  ThreesAndTwos many(static_cast<int>(sched::kFewNodes) + 1);
  CHECK_LT(many.work_for(many.gang(40, 40), false).nodes_scored, steps);
}

}  // namespace berth

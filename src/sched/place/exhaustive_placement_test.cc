// Gangs of several groups for which every way to spread them is tried, and the limits of that search.

#include "sched/place/exhaustive_placement.h"

#include <string>
#include <vector>

#include "sched/place/place.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

// Nodes with three GPUs, and a gang of two groups with two GPUs a task: no node holds two tasks.
struct ThreesAndTwos : FleetFixture {
  explicit ThreesAndTwos(int nodes) {
    command(ApplyConfig{config({queue("a")}), "op"});
    for (int n = 0; n < nodes; ++n) command(RegisterNode{node("n" + std::to_string(n), 3)});
  }

  // Submits a gang with so many tasks of each group.
  const state::JobState& gang(const std::vector<std::int32_t>& counts) {
    JobSpec spec = job("a", counts.front(), 2);
    for (std::size_t g = 1; g < counts.size(); ++g) {
      spec.groups.push_back(spec.groups.front());
      spec.groups[g].name = "g" + std::to_string(g);
      spec.groups[g].count = counts[g];
      spec.groups[g].request.cpu_milli += static_cast<std::int64_t>(g);
    }
    return *state.job(submit(spec));
  }

  sched::SearchStats work_for(const state::JobState& job, bool fits) {
    sched::SearchStats work;
    CHECK_EQ(sched::try_place(state, job, sched::kAllModels, sched::Pools::kAny, work).has_value(), fits);
    return work;
  }
};

}  // namespace

TEST_CASE("what fits no way costs a bounded number of steps, and on many nodes or for too few GPUs none") {
  const auto steps = static_cast<std::size_t>(sched::kMostSteps);
  ThreesAndTwos few(static_cast<int>(sched::kFewNodes));
  CHECK_LT(few.work_for(few.gang({32, 32}), true).nodes_scored, steps);
  const std::size_t tried = few.work_for(few.gang({40, 40}), false).nodes_scored;
  CHECK_GT(tried, steps);
  CHECK_LT(tried, 8 * steps);
  CHECK_LT(few.work_for(few.gang({60, 60}), false).nodes_scored, steps);
  ThreesAndTwos many(static_cast<int>(sched::kFewNodes) + 1);
  CHECK_LT(many.work_for(many.gang({40, 40}), false).nodes_scored, steps);
  const std::vector<std::int32_t> groups(30, 3);  // groups times nodes exceeds the steps
  CHECK_LE(few.work_for(few.gang(groups), false).nodes_scored, many.work_for(many.gang(groups), false).nodes_scored);
}

}  // namespace berth

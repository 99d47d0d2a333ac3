// Random fleets: which jobs must leave for another, and which will have left by a given time.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sched/backfill/earliest_start.h"
#include "sched/place/place.h"
#include "sched/preempt/preempt.h"
#include "sched/preempt/victim_bounds.h"
#include "sched/preempt/victim_candidates.h"
#include "state/estimate.h"
#include "state/transaction.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using state::JobState;
using state::State;

// Returns when the running job is expected to end, or ends for certain, computed from the job alone.
Timestamp end_of(const State& state, const JobState& job, Timestamp now, bool by_estimates) {
  Timestamp end = state::expected_end(state, job, now);
  if (!by_estimates && !state::ends_for_certain(state, job)) end = Timestamp::never();
  for (const state::TaskState& task : job.attempt->tasks) {
    for (const state::ClosedSpan& window : state.node(task.placement.node).maintenance) {
      if (window.from > now) end = std::min(end, window.from);
    }
  }
  return end;
}

}  // namespace

TEST_CASE("a claimant that fits once some have left is never counted out, and one that does not mostly is") {
  std::size_t fitting = 0;
  std::size_t counted_out = 0;
  std::size_t futile = 0;
  for_each_step({.first = 600, .end = 630, .steps = 25, .arrivals = 4}, [&](Fleet& fleet) {
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      if (job.nomination) continue;
      sched::SearchStats work;
      sched::VictimBounds victim_bounds(fleet.state, job, work);
      const auto tasks_of = [&](JobId other) {
        return static_cast<std::uint32_t>(fleet.state.job(other)->attempt->tasks.size());
      };
      for (const JobId other : fleet.state.running()) victim_bounds.leave(*fleet.state.job(other), 0, tasks_of(other));
      for (const JobId other : fleet.state.running()) victim_bounds.stay(*fleet.state.job(other), 0, tasks_of(other));
      bool fits = false;
      {
        state::Transaction transaction(fleet.state);  // what it removes is not counted twice
        for (const JobId other : fleet.state.running()) {
          if (fleet.random.chance(500)) continue;
          transaction.remove(other);
          victim_bounds.leave(*fleet.state.job(other), 0, tasks_of(other));
        }
        fits = sched::try_place(fleet.state, job, sched::kAllModels, sched::Pools::kAny, work).has_value();
      }
      CAPTURE(id.value());
      if (fits) REQUIRE(victim_bounds.might_fit());
      if (fits) ++fitting;
      if (!victim_bounds.might_fit()) ++counted_out;
      if (victim_bounds.might_fit() && !fits && victim_bounds.counts()) ++futile;
      fleet.command(CancelJob{id, "ann"});
    }
  });
  CHECK_GT(fitting, 500);
  CHECK_GT(counted_out, 200);
  CHECK_LT(futile, counted_out / 4);
}

TEST_CASE("whether somebody could be stopped for a job is told as the search for them would") {
  std::size_t possible = 0;
  std::size_t futile = 0;
  std::size_t shared = 0;
  for_each_step({.first = 800, .end = 860, .steps = 25, .arrivals = 4}, [&](Fleet& fleet) {
    const std::size_t budget = fleet.random.below(5);
    const std::set<JobId> nobody;
    sched::SharedVictimCandidates candidates;
    std::size_t searches = 0;
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      if (job.nomination || job.spec.groups.size() > 1) continue;
      sched::SearchStats work;
      const auto full = sched::find_victims({fleet.state, fleet.now, nobody, budget}, id, work);
      const auto brief = sched::find_victims({fleet.state, fleet.now, nobody, budget, &candidates}, id, work);
      const bool might = full.decision || full.left_out || full.too_dear;
      CAPTURE(id.value());
      REQUIRE_EQ(brief.decision || brief.left_out, might);
      ++(might ? possible : futile);
      ++searches;
      if (might) continue;
      REQUIRE_EQ(brief.reevaluate_at.ms, full.reevaluate_at.ms);
      REQUIRE_EQ(brief.hopeless, full.hopeless);
    }
    if (!candidates.by_preemptor.empty()) shared += searches - candidates.by_preemptor.size();
    for (const JobId id : pending_of(fleet.state)) {
      if (fleet.random.chance(300)) fleet.command(CancelJob{id, "ann"});
    }
  });
  CHECK_GT(possible, 200);
  CHECK_GT(futile, 500);
  CHECK_GT(shared, 200);
}

TEST_CASE("the ends of what runs stand in their order, however few of them are worked out at a time") {
  std::size_t ends = 0;
  std::size_t left = 0;
  std::size_t services = 0;
  for (std::uint64_t seed = 700; seed < 740; ++seed) {
    Fleet fleet(seed);
    JobSpec service = fleet.random_spec();
    service.kind = JobKind::kService;
    service.groups.resize(1);
    service.groups.front().min_count = 0;
    service.groups.front().request.gpus = 0;
    service.groups.front().request.gpu_models.clear();
    service.time_limit_s = service.estimate_s = 0;
    service.deadline.reset();
    if (fleet.command(SubmitJob{service, ""})) ++services;
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (const bool by_estimates : {true, false}) {
        std::vector<sched::Release> expected;
        for (const JobId id : fleet.state.running()) {
          const Timestamp end = end_of(fleet.state, *fleet.state.job(id), fleet.now, by_estimates);
          if (!end.is_never()) expected.push_back({end, id});
        }
        for (const auto& [name, window] : fleet.state.maintenance()) expected.push_back({window.to, JobId::none()});
        std::sort(expected.begin(), expected.end());
        sched::SearchStats work;
        const std::vector<sched::ExpectedEnd> none;
        sched::ReleasesInOrder releases(fleet.state, fleet.now, none, by_estimates, work);
        for (std::size_t count = 0; count < expected.size(); count += 1 + fleet.random.below(3)) {
          CAPTURE(seed);
          CAPTURE(step);
          REQUIRE_EQ(releases.work_out(count + 1, work), count + 1);
          for (std::size_t i = 0; i <= count; ++i) REQUIRE((releases[i] == expected[i]));
          left += fleet.state.running().size() - work.ends_worked_out;
        }
        REQUIRE_EQ(releases.work_out(expected.size() + 1, work), expected.size());
        ends += expected.size();
      }
    }
  }
  CHECK_GT(ends, 2000);
  CHECK_GT(left, 1000);
  CHECK_GT(services, 20);
}

}  // namespace berth

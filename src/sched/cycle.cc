#include "sched/cycle.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sched/admit.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched/preempt.h"
#include "state/trial.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::State;
using state::Trial;

struct Cycle {
  State& state;
  Timestamp now;
  Trial trial;
  Plan plan;
  PlaceWork work;
  std::set<JobId> victims;  // chosen in this cycle

  Cycle(State& s, Timestamp t) : state(s), now(t), trial(s) {}
};

// Steps 4 and 5: quota, then the whole gang on what is available.
std::optional<std::vector<TaskPlacement>> fit_now(Cycle& cycle, const JobState& job, Reason& why) {
  const Admission admission = admit(cycle.state, job);
  if (admission.models == 0) {
    why = admission.reason;
    return std::nullopt;
  }
  auto placements = place(cycle.state, job, admission.models, cycle.work, why);
  if (!placements) return std::nullopt;
  const bool allowed = trim_until(job.spec, *placements, [&](const std::vector<TaskPlacement>& rest) {
    const auto reason = refuses(cycle.state, job, rest);
    if (reason) why = *reason;
    return !reason;
  });
  return allowed ? std::move(placements) : std::nullopt;
}

void start(Cycle& cycle, JobId id, std::vector<TaskPlacement> placements) {
  cycle.trial.place(id, placements);
  cycle.plan.decisions.emplace_back(StartDecision{id, std::move(placements)});
}

// Claimants whose victims are leaving go first: where they were promised a place, or wherever they fit by now.
void serve_nominations(Cycle& cycle) {
  std::vector<JobId> claimants(cycle.state.nominated().begin(), cycle.state.nominated().end());
  std::sort(claimants.begin(), claimants.end(), [&](JobId a, JobId b) {
    const JobState& left = *cycle.state.job(a);
    const JobState& right = *cycle.state.job(b);
    return std::tuple(-left.priority, left.submitted, left.id) < std::tuple(-right.priority, right.submitted, right.id);
  });
  for (const JobId id : claimants) {
    const Trial::Mark mark = cycle.trial.mark();
    ++cycle.plan.jobs_asked;
    cycle.trial.lift_nomination(id);
    Reason why;
    if (auto placements = fit_now(cycle, *cycle.state.job(id), why)) {
      start(cycle, id, std::move(*placements));
      continue;
    }
    cycle.trial.rollback_to(mark);
    why.code = ReasonCode::kWaitsForVictims;
    cycle.plan.refused.emplace_back(id, why);
  }
}

// Step 6: who must leave. The victims keep what they hold until they are gone; the claimant is promised its places.
bool nominate(Cycle& cycle, JobId id) {
  const auto limit = static_cast<std::size_t>(cycle.state.config().scheduling.victims_per_cycle);
  if (cycle.victims.size() >= limit) return false;
  const VictimSearch search{cycle.state, cycle.now, cycle.victims, limit - cycle.victims.size()};
  auto decision = find_victims(search, id, cycle.work);
  if (!decision) return false;
  cycle.victims.insert(decision->victims.begin(), decision->victims.end());
  cycle.trial.nominate(id, decision->placements);
  cycle.plan.decisions.emplace_back(std::move(*decision));
  return true;
}

void ask(Cycle& cycle, Order& order, JobId id) {
  const JobState& job = *cycle.state.job(id);
  Reason why;
  ++cycle.plan.jobs_asked;
  if (auto placements = fit_now(cycle, job, why)) {
    start(cycle, id, std::move(*placements));
    return;
  }
  if (!is_never(why.code) && nominate(cycle, id)) return;
  cycle.plan.refused.emplace_back(id, why);
  order.refuse(id);
}

}  // namespace

Plan run_cycle(State& state, Timestamp now) {
  // 1. The state is current; everything below is tried on its undo log.
  Cycle cycle(state, now);
  // 2. Promises first.
  serve_nominations(cycle);
  // 3. Then the most deserving queue's first job, again and again; 4-6. quota, places, victims.
  Order order(state, now);
  while (const auto job = order.next()) ask(cycle, order, *job);
  // 9. The plan; the trial takes everything back.
  cycle.plan.ask_again_at = cycle.work.ask_again_at;
  cycle.plan.nodes_scored = cycle.work.nodes_scored;
  return std::move(cycle.plan);
}

}  // namespace berth::sched

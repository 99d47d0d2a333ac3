#include "sched/resize/resize.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "sched/backfill/backfill.h"
#include "sched/nomination/preemption_conflicts.h"
#include "sched/preempt/preempt.h"
#include "sched/queue/quota.h"
#include "sched/resize/consolidate.h"
#include "sched/resize/elastic.h"

namespace berth::sched {

using state::JobState;
using state::State;
using state::Transaction;

namespace {

constexpr std::int64_t kMovesSoughtEveryMs = 60'000;  // the interval of the search for reservations too

}  // namespace

void consolidate(Cycle& cycle) {
  const auto sought = [](const Decision& decision) { return std::holds_alternative<SeekDecision>(decision); };
  if (std::none_of(cycle.plan.decisions.begin(), cycle.plan.decisions.end(), sought)) return;
  auto [decision, reevaluate_at] =
      find_moves({cycle.state, cycle.transaction, cycle.now, cycle.work, cycle.victims, cycle.decided}, cycle.plan);
  cycle.reevaluate_by(reevaluate_at);
  if (!decision) {
    // Jobs that this cycle started may be moved in the next one.
    const bool any_started = !cycle.decided.empty() && cycle.state.config().scheduling.consolidations_per_hour > 0;
    if (any_started) cycle.reevaluate_by(cycle.now + kMovesSoughtEveryMs);
    return;
  }
  decision->within =
      within_of_nomination(cycle.state, *cycle.state.job(decision->preemptor), decision->placements, {}, {});
  cycle.decided.insert(decision->preemptor);
  cycle.transaction.nominate(decision->preemptor, decision->placements, decision->within);
  for (const Move& move : decision->moves) {
    cycle.victims.insert(move.job);
    cycle.transaction.set_aside(move.job, move.to);
  }
  cycle.plan.decisions.emplace_back(std::move(*decision));
}

void scale_up(Cycle& cycle) {
  const Transaction::Mark mark = cycle.transaction.mark();
  set_reserved_aside(cycle.state, cycle.transaction, cycle.plan);
  cycle.reevaluate_by(grow_gangs({cycle.state, cycle.transaction, cycle.now, cycle.victims, cycle.work}, cycle.plan));
  cycle.transaction.rollback_to(mark);
}

}  // namespace berth::sched

#include "sched/cycle.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "sched/backfill/backfill.h"
#include "sched/evaluate.h"
#include "sched/nomination/nominate.h"
#include "sched/nomination/serve.h"
#include "sched/queue/order.h"
#include "sched/requeue/requeue.h"
#include "sched/resize/resize.h"

namespace berth::sched {

namespace {

// Probes the equivalence classes that a change may help, and parks those that can neither start nor evict.
void probe(Cycle& cycle) {
  Probed probed = probe_classes(cycle.state, cycle.now, cycle.work, cycle.verdicts, cycle.cache);
  cycle.plan.scheduling_attempts += probed.refused.size();
  cycle.plan.refused.insert(cycle.plan.refused.end(), std::move_iterator(probed.refused.begin()),
                            std::move_iterator(probed.refused.end()));
  cycle.plan.classes_probed = probed.eq_classes;
  cycle.plan.classes_resumed = probed.resumed;
}

// Returns the next job to evaluate. If only one leaf can still start or evict, siblings need not be compared.
std::optional<JobId> next_job(Cycle& cycle, Order& order) {
  if (cycle.cache.none(cycle.state)) return std::nullopt;
  const auto leaf = cycle.cache.only_leaf(cycle.state);
  return leaf ? order.next_of(*leaf) : order.next();
}

// Returns when the next cycle may decide something even if nothing changes until then.
Timestamp next_cycle(const Cycle& cycle) {
  const auto& starts = cycle.plan.decisions;
  const bool any_started = std::any_of(starts.begin(), starts.end(), [](const Decision& decision) {
    return std::holds_alternative<StartDecision>(decision);
  });
  // If quota refused a job at the places that it found, it may now find others that count less: jobs that started since
  // have taken some places. And where a start displaces idle use, what is left of that is known when the cycle has
  // ended. So the next cycle follows at once.
  const bool refused = cycle.refused_at_places || cycle.refused_to_borrow;
  const Timestamp again = refused && any_started ? cycle.now : cycle.reevaluate_at;
  const auto& timed = cycle.state.waits().for_time();
  const Timestamp first_due = timed.empty() ? Timestamp::never() : timed.begin()->first;
  return std::min({again, first_due, cycle.state.next_urgent(), cycle.state.next_promotion()});
}

}  // namespace

Plan run_cycle(state::State& state, Timestamp now) {
  // 1. The state's indexes are current. Everything below is tried in one transaction.
  Cycle cycle(state, now);
  state.pass_deadlines(now);

  // 2. Nominated jobs go first. If one starts elsewhere, its victims go on, and that is logged before anything else.
  serve_nominations(cycle);
  if (cycle.cancels_evictions) {
    cycle.plan.reevaluate_at = now;
    return std::move(cycle.plan);
  }
  probe(cycle);

  // 3. The first job of the most deserving queue, again and again, by weighted hierarchical DRF.
  Order order(state, now, cycle.cache.asked());
  while (const auto job = next_job(cycle, order)) {
    // 4. Quota on every ancestor; 5. places for the whole gang beside reservations; 6. else victims, and a nomination.
    evaluate(cycle, order, *job);
  }
  refuse_rest(cycle, order);
  evict_after_all(cycle);

  // 7. Backfill reservations for the first blocked jobs.
  cycle.reevaluate_by(
      renew_reservations({state, cycle.transaction, now, cycle.work, cycle.starting, cycle.decided}, cycle.plan));

  // 8. Moves that put free pieces together; then elastic gangs scale up.
  consolidate(cycle);
  scale_up(cycle);

  // 9. The plan. The transaction is rolled back.
  cycle.plan.reevaluate_at = next_cycle(cycle);
  cycle.plan.nodes_scored = cycle.work.nodes_scored;
  return std::move(cycle.plan);
}

}  // namespace berth::sched

#pragma once
// One iteration of the loop, the same for the daemon and the simulation: handle the commands, reconcile, run one
// scheduling cycle if it is due, and reconcile again. It is a pure function. The caller makes the records durable and
// only then shows replies and effects.
//
// The cycle is a parameter, `Plan cycle(state::State&, Timestamp now)`, because control may not include sched;
// production passes sched::run_cycle. The search for new places of a moved job is a parameter for the same reason.
// `origins`, if given, has the origin of each command, in order.

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "control/batch.h"
#include "control/commit.h"
#include "control/handle.h"
#include "control/node_contact.h"
#include "control/reconcile.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "state/state.h"

namespace berth::control {

// What one iteration remembers for the next. After a restart it is empty, which makes the first iteration run a cycle.
struct IterationMemory {
  std::optional<std::uint64_t> opportunity;  // State::opportunity() at the last cycle; a cycle is due when it differs
  Timestamp reevaluate_at = Timestamp::never();  // a cycle is due at this time even if nothing else changes
  std::optional<Timestamp> few_silent_since;     // since when few enough nodes are silent (see review_deferred)
  bool skip_cycle = false;                       // set by the caller: the next iteration runs no cycle, which stays due
};

struct Iteration {
  std::vector<EventRecord> records;        // the caller appends them as one batch; may be empty
  std::vector<Result<Reply>> replies;      // one for each command, in order; shown only after the append
  std::vector<FinishedJob> finished_jobs;  // jobs that finished; appended to the history with the records
  Plan plan;                               // the plan of the cycle, if one ran
  bool cycle_ran = false;
  bool again = false;                      // another iteration, at once, may start more jobs
  Timestamp wake_at = Timestamp::never();  // when the next iteration is due, even without commands
};

template <class Cycle>
Iteration run_iteration(state::State& state, Timestamp now, std::span<const Command> commands, IterationMemory& memory,
                        Cycle&& cycle, const FindMoveTarget& move_target = {}, std::span<const Origin> origins = {}) {
  Batch batch(state, now);
  Iteration iteration;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    batch.asked_by(i < origins.size() ? origins[i] : Origin());
    iteration.replies.push_back(handle(batch, commands[i], move_target));
  }
  batch.asked_by({});
  const Timestamp gives_up_at = review_deferred(batch, memory.few_silent_since);
  reconcile(batch);
  const bool due = memory.opportunity != state.opportunity() || memory.reevaluate_at <= batch.now();
  if (due && !memory.skip_cycle) {
    memory.opportunity = state.opportunity();
    iteration.plan = cycle(state, batch.now());
    iteration.cycle_ran = true;
    memory.reevaluate_at = iteration.plan.reevaluate_at;
    commit(batch, iteration.plan);
    reconcile(batch);
  }
  iteration.again = memory.opportunity != state.opportunity();
  iteration.wake_at = std::min({next_timer(state), memory.reevaluate_at, gives_up_at});
  iteration.records = batch.take_records();
  iteration.finished_jobs = batch.take_finished_jobs();
  return iteration;
}

}  // namespace berth::control

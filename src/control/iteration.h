#pragma once
// One turn of the loop, the same for the daemon and for simulation: commands, what follows from them, one scheduling
// cycle if anything changed that could matter to it, and what follows from that. Pure: the caller makes the records
// durable and only then lets replies and effects be seen. The cycle is handed in, because control and sched do not know
// each other: `Plan cycle(state::State&, Timestamp now)`, in production sched::run_cycle; and so is who finds places
// for a job that an operator moves.

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

// What one turn leaves for the next. A restart begins with a fresh one, which makes the first turn run its cycle.
struct IterationMemory {
  std::optional<std::uint64_t> opportunity;      // State::opportunity() at the last cycle
  Timestamp reevaluate_at = Timestamp::never();  // time alone may let a waiting job start, or claim victims, then
  std::optional<Timestamp> few_silent_since;     // since when no mass loss keeps silent nodes from being given up
  bool skip_cycle = false;  // the caller's wish for the next turn: commands only, the cycle stays due
};

struct Iteration {
  std::vector<EventRecord> records;    // to be appended as one batch; may be empty
  std::vector<Result<Reply>> replies;  // one for each command, in order; not to be seen before the append
  std::vector<Retired> retired;        // jobs that left the state; appended to history with the records
  Plan plan;                           // of the cycle, if one ran: why the others do not run
  bool cycle_ran = false;
  bool again = false;                      // another turn, without waiting for anything, may start more
  Timestamp wake_at = Timestamp::never();  // the next turn is due then, even without commands
};

template <class Cycle>
Iteration run_iteration(state::State& state, Timestamp now, std::span<const Command> commands, IterationMemory& memory,
                        Cycle&& cycle, const FindMoveTarget& move_target = {}) {
  Batch batch(state, now);
  Iteration iteration;
  for (const Command& command : commands) iteration.replies.push_back(handle(batch, command, move_target));
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
  iteration.retired = batch.take_retired();
  return iteration;
}

}  // namespace berth::control

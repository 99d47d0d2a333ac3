#include "sim/world/replay.h"

#include <variant>

#include "base/check.h"
#include "control/commit.h"
#include "sched/cycle.h"
#include "state/state.h"
#include "store/event_codec.h"

namespace berth::sim {

Replay replay(const store::Log& log) {
  Replay replay;
  state::State state;
  const auto read = log.read(1, [&](const store::Record& record) -> Result<bool> {
    const auto event = store::to_event(record);
    if (!event) return event.error();
    if (const auto* ran = std::get_if<CycleRan>(&event->event)) {
      ++replay.cycles;
      state.release_due_timers(event->time);  // as the iteration did before its cycle
      if (control::plan_hash(sched::run_cycle(state, event->time)) != ran->plan_hash) {
        replay.difference = "the cycle of record " + std::to_string(record.seq) + " decides something else in a replay";
        return false;
      }
    }
    state.apply(*event);
    state.clear_unreconciled();
    state.clear_roomier();
    return true;
  });
  if (!read) replay.difference = read.error().message;
  return replay;
}

}  // namespace berth::sim

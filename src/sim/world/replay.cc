#include "sim/world/replay.h"

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/hash.h"
#include "control/commit.h"
#include "sched/cycle.h"
#include "state/state.h"
#include "store/event_codec.h"

namespace berth::sim {

Replay replay(const store::Log& log, const std::optional<SchedulingConfig>& scheduling) {
  Replay replay;
  Hasher logged;
  Hasher decided;
  state::State state;
  const auto read = log.read(1, [&](const store::Record& record) -> Result<bool> {
    auto event = store::to_event(record);
    if (!event) return event.error();
    if (auto* configured = std::get_if<ClusterConfigured>(&event->event); configured != nullptr && scheduling)
      configured->config.scheduling = *scheduling;
    if (const auto* ran = std::get_if<CycleRan>(&event->event)) {
      ++replay.cycles;
      state.release_due_timers(event->time);  // as the iteration did before its cycle
      const std::uint64_t plan = control::plan_hash(sched::run_cycle(state, event->time));
      logged.add(ran->plan_hash);
      decided.add(plan);
      if (plan != ran->plan_hash && ++replay.differing == 1)
        replay.difference = "the cycle of record " + std::to_string(record.seq) + " decides something else in a replay";
    }
    state.apply(*event);
    state.clear_unreconciled();
    state.clear_roomier();
    return true;
  });
  if (!read) replay.difference = read.error().message;
  replay.logged_hash = logged.digest();
  replay.decided_hash = decided.digest();
  return replay;
}

}  // namespace berth::sim

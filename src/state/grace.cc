#include "state/grace.h"

#include <algorithm>

namespace berth::state {

Timestamp grace_ends(const State& state, const AttemptState& attempt) {
  Timestamp ends = attempt.stop->deadline;
  for (const TaskState& task : attempt.tasks) {
    if (task.phase == TaskPhase::kExited) continue;
    if (const Timestamp gone_at = state.node(task.placement.node).gone_at; gone_at.ms > 0) {
      ends = std::min(ends, gone_at);
    }
  }
  return ends;
}

}  // namespace berth::state

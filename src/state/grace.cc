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

bool goes_on_without(const JobState& job, JobId preemptor) {
  if (!job.attempt || !job.attempt->stop) return false;
  const Stop& stop = *job.attempt->stop;
  if (stop.preemptor != preemptor || stop.acknowledged || stop.forced) return false;
  // A scale-down is not cancelled, because the gang can scale up again. A stop for a cause of its own continues. So
  // does a move: the job may have begun to save, and its new places are reserved.
  if (stop.keep > 0 || (stop.cause != StopCause::kReclaim && stop.cause != StopCause::kPreempt)) return false;
  return job.attempt->exited <= stop.exited_before;
}

std::int64_t grace_used_ms(const State& state, const JobState& job, Timestamp now) {
  const AttemptState& attempt = *job.attempt;
  const std::int64_t used = std::min(attempt.grace_used_ms, state.grace_ms(job));
  return std::max<std::int64_t>(0, used - (now - attempt.eviction_cancelled_at));
}

std::int64_t grace_left_ms(const State& state, const JobState& job, Timestamp now) {
  return std::max<std::int64_t>(0, state.grace_ms(job) - grace_used_ms(state, job, now));
}

}  // namespace berth::state

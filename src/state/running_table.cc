#include "state/running_table.h"

#include "base/checked.h"
#include "state/run_times.h"

namespace berth::state {

namespace {

Timestamp end_of(const JobState& job) {
  if (job.attempt->stop) return job.attempt->stop->deadline;
  const std::int64_t seconds = job.spec.time_limit_s > 0 ? job.spec.time_limit_s : job.spec.estimate_s;
  return seconds == 0 ? Timestamp::never() : job.attempt->started + checked_multiply(seconds, 1000);
}

Timestamp expected_of(const JobState& job) {
  const AttemptState& attempt = *job.attempt;
  if (attempt.stopping()) return attempt.stop->deadline;
  if (job.spec.time_limit_s > 0) return job.limit_ends(attempt.started);
  return attempt.started + checked_multiply(job.expected_s, 1000);
}

}  // namespace

RunningRow running_row(const JobState& job) {
  const AttemptState& attempt = *job.attempt;
  const Charge& first = attempt.charges.front();
  RunningRow row;
  row.job = job.id;
  row.queue = job.queue;
  row.priority = job.priority;
  row.started = attempt.started;
  row.saved = attempt.checkpoint_at.value_or(attempt.started);
  row.end = end_of(job);
  row.expected = expected_of(job);
  for (const Charge& charge : attempt.charges) row.gpu_milli += charge.amounts[kDimGpu];
  row.within = first.within;
  row.order = first.order;
  row.likeness = likeness_of(job.spec);
  row.tasks = static_cast<std::uint32_t>(attempt.tasks.size());
  const bool moved = !job.past.empty() && job.past.back().cause && is_move(*job.past.back().cause);
  row.plain = attempt.charges.size() == 1 && attempt.base_tasks() == row.tasks && !job.parent.valid() &&
              !job.evicted_last() && !moved;
  row.on_signal = job.spec.checkpoint.on_signal;
  row.stopping = job.phase != JobPhase::kRunning;
  row.timed = attempt.stopping() || job.spec.time_limit_s > 0;
  return row;
}

void RunningTable::set(JobState& job) {
  if (job.running_row == kNoRow) {
    job.running_row = static_cast<std::uint32_t>(rows_.size());
    rows_.emplace_back();
  }
  RunningRow& row = rows_[job.running_row];
  if (row.timed) --timed_;
  row = running_row(job);
  if (row.timed) ++timed_;
}

}  // namespace berth::state

#include "sim/simulate/progress.h"

#include <algorithm>
#include <variant>

namespace berth::sim {

std::int64_t Progress::done_ms(const OneJob& job, std::int64_t now_ms) {
  return job.saved_before_ms + std::max<std::int64_t>(0, now_ms - job.started_ms - job.restart_ms);
}

void Progress::on_record(const EventRecord& record) {
  const JobId id = job_of(record.event);
  if (!id.valid()) return;
  const std::uint32_t index = submissions_.job_of(id);
  const WorkloadJob& job = workload_.jobs[index];
  OneJob& one = jobs_[index];
  const std::int64_t now = record.time.ms;
  if (const auto* started = std::get_if<AttemptStarted>(&record.event)) {
    const auto& contract = job.source->checkpoint;
    one.saved_before_ms = one.saved_ms;
    one.restart_ms = started->attempt > 1 && contract ? contract->restart_ms : 0;
    one.started_ms = now;
    one.runs = true;
    one.asked_ms.reset();
  } else if (std::holds_alternative<StopBegan>(record.event)) {
    one.asked_ms = now;
  } else if (std::holds_alternative<CheckpointReported>(record.event)) {
    // A save on request keeps the work up to the request; the time of the save is no work.
    one.saved_ms = std::min(job.useful_ms, done_ms(one, one.asked_ms.value_or(now)));
  } else if (const auto* ended = std::get_if<AttemptEnded>(&record.event)) {
    if (ended->outcome == Outcome::kSucceeded) one.saved_ms = job.useful_ms;
    one.lost_ms += now - one.started_ms - (one.saved_ms - one.saved_before_ms);
    one.runs = false;
  }
}

std::int64_t Progress::kept_ms(std::uint32_t job, std::int64_t now_ms) const {
  const OneJob& one = jobs_[job];
  return one.runs ? std::min(workload_.jobs[job].useful_ms, done_ms(one, now_ms)) : one.saved_ms;
}

backend::TaskScript Progress::script_for(JobId id) const {
  const std::uint32_t index = submissions_.job_of(id);
  const WorkloadJob& job = workload_.jobs[index];
  const OneJob& one = jobs_[index];
  backend::TaskScript script;
  script.start_delay_ms = 0;
  script.die_after_ms = 0;
  script.run_ms = one.restart_ms + job.useful_ms - one.saved_ms;
  script.leave_after_ms = 0;
  if (const auto& contract = job.source->checkpoint) {
    script.save_every_ms = contract->interval_ms > 0 ? contract->interval_ms : -1;
    script.ack_after_ms = contract->cost_ms;
    script.leave_after_ms = contract->cost_ms;
  }
  return script;
}

}  // namespace berth::sim

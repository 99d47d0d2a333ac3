#include "daemon/scheduler_metrics.h"

#include <algorithm>
#include <set>
#include <variant>

#include "state/attained_service.h"

namespace berth::daemon {

namespace {

using state::AttemptState;
using state::JobState;
using state::State;
using telemetry::Exposition;
using telemetry::Histogram;
using telemetry::MetricType;

constexpr std::int64_t kSecondMs = 1000;
constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kDayMs = 24 * kHourMs;

// 1 s to 7 d.
constexpr std::array<std::int64_t, 15> kWaitsMs = {1 * kSecondMs,   5 * kSecondMs,   15 * kSecondMs,   60 * kSecondMs,
                                                   300 * kSecondMs, 900 * kSecondMs, 1800 * kSecondMs, 1 * kHourMs,
                                                   2 * kHourMs,     4 * kHourMs,     8 * kHourMs,      1 * kDayMs,
                                                   2 * kDayMs,      4 * kDayMs,      7 * kDayMs};
constexpr std::array<std::int64_t, 12> kLeavingMs = {
    1 * kSecondMs,  2 * kSecondMs,   5 * kSecondMs,   10 * kSecondMs,  15 * kSecondMs,   30 * kSecondMs,
    60 * kSecondMs, 120 * kSecondMs, 300 * kSecondMs, 600 * kSecondMs, 1800 * kSecondMs, 1 * kHourMs};
constexpr std::array<std::int64_t, 12> kWorkUs = {100,    500,    1000,    2500,    5000,      10'000,
                                                  25'000, 50'000, 100'000, 250'000, 1'000'000, 5'000'000};

constexpr int kSecondPlaces = 3;  // decimal places of a second
constexpr int kUs = 6;
constexpr int kGpuMilliMs = 6;  // of a GPU-second

// Returns true if the cause of the stop is outside the job's own run: the causes that the metrics count as evictions. A
// failed task that stops the rest of its gang is no such cause, nor is a scale-down.
constexpr bool is_eviction(StopCause cause) { return cause != StopCause::kTaskFailed && cause != StopCause::kShrink; }

// Returns true if the job is requeued after the stop. A cancelled job, or one at its time limit, is not.
constexpr bool is_tried_again(StopCause cause) {
  return is_eviction(cause) && cause != StopCause::kTimeLimit && cause != StopCause::kUser;
}

template <class Enum, class Visit>
void for_each_of(Visit&& visit) {
  for (std::size_t i = 0; i < EnumNames<Enum>::kNames.size(); ++i) visit(static_cast<Enum>(i));
}

template <class Enum, std::size_t size>
std::uint64_t& count_of(std::array<std::uint64_t, size>& counts, Enum value) {
  return counts[static_cast<std::size_t>(value)];
}

telemetry::Decimal whole(std::uint64_t count) { return {static_cast<std::int64_t>(count), 0}; }

bool serves(const State& state, const JobState& job) {
  const JobState* parent = state.job(job.parent);
  return parent != nullptr && parent->spec.kind == JobKind::kService;
}

}  // namespace

CycleWork work_of(const Plan& plan, std::int64_t took_us) {
  CycleWork work{.scheduling_attempts = plan.scheduling_attempts,
                 .nodes_scored = plan.nodes_scored,
                 .refused = {},
                 .took_us = took_us};
  for (const auto& [job, reason] : plan.refused) ++work.refused[reason.code];
  return work;
}

SchedulerMetrics::ClassCounts::ClassCounts()
    : wait_ms(kWaitsMs, kSecondPlaces), completion_ms(kWaitsMs, kSecondPlaces) {}

SchedulerMetrics::QueueCounts::QueueCounts() {
  for_each_of<StopCause>([&](StopCause cause) {
    if (is_tried_again(cause)) lost[name_of(cause)] = 0;
  });
  for (const Outcome outcome : {Outcome::kFailed, Outcome::kStartFailed}) lost[name_of(outcome)] = 0;
}

SchedulerMetrics::SchedulerMetrics(const State& state) : cycle_us_(kWorkUs, kUs), append_us_(kWorkUs, kUs) {
  for_each_of<StopCause>([&](StopCause cause) {
    if (is_eviction(cause)) leaving_ms_.emplace(cause, Histogram(kLeavingMs, kSecondPlaces));
  });
  add_leaves(state.config());
  state.jobs().for_each([&](const JobState& job) {
    if (!job.is_parent()) class_of(job);
    if (!job.attempt) return;
    const AttemptState& attempt = *job.attempt;
    Progress& progress = progress_[job.id];
    if (attempt.stopping()) progress.asked = service_of(job, attempt.stop->began);
    const Timestamp saved = attempt.checkpoint_at.value_or(attempt.started);
    progress.saved = service_of(job, attempt.stopping() ? std::min(saved, attempt.stop->began) : saved);
  });
}

void SchedulerMetrics::on_event(const EventRecord& record, const State& before) {
  const Timestamp now = std::max(before.now(), record.time);
  std::visit([&](const auto& event) { on(event, before, now); }, record.event);
}

// A queue has a series from its first moment: if a series begins above zero, Prometheus does not see the first
// increase.
void SchedulerMetrics::add_leaves(const ClusterConfig& config) {
  std::set<std::string_view> parents;
  for (const QueueConfig& queue : config.queues) {
    const std::size_t slash = queue.path.rfind('/');
    if (slash != std::string::npos) parents.insert(std::string_view(queue.path).substr(0, slash));
  }
  for (const QueueConfig& queue : config.queues) {
    if (!parents.contains(queue.path)) queues_[queue.path];
  }
}

void SchedulerMetrics::on(const ClusterConfigured& event, const State&, Timestamp) { add_leaves(event.config); }

void SchedulerMetrics::on(const JobSubmitted& event, const State&, Timestamp) {
  if (event.spec.kind == JobKind::kService || event.spec.kind == JobKind::kArray) return;
  ++queues_[event.spec.queue].classes[event.spec.job_class].submitted;
}

void SchedulerMetrics::on(const AttemptStarted& event, const State& before, Timestamp now) {
  const JobState& job = *before.job(event.job);
  ClassCounts& counts = class_of(job);
  ++counts.started;
  if (event.attempt > 1) {
    ++counts.restarts;
  } else {
    counts.wait_ms.observe(state::waited_ms(job, now));
  }
  progress_[event.job] = {service_of(job, now), {}};
}

void SchedulerMetrics::on(const AttemptGrown& event, const State& before, Timestamp) {
  ++queue_of(*before.job(event.job)).grown;
}

void SchedulerMetrics::on(const AttemptShrunk& event, const State& before, Timestamp) {
  ++queue_of(*before.job(event.job)).shrunk;
}

void SchedulerMetrics::on(const TaskExited& event, const State& before, Timestamp) {
  if (event.reason == ExitReason::kOutOfMemory) ++class_of(*before.job(event.job)).out_of_memory;
}

void SchedulerMetrics::on(const StopBegan& event, const State& before, Timestamp now) {
  if (event.keep > 0) return;  // an elastic gang scales down and runs on
  const JobState& job = *before.job(event.job);
  progress_[event.job].asked = service_of(job, now);
  if (is_eviction(event.cause)) ++count_of(queue_of(job).evictions, event.cause);
}

void SchedulerMetrics::on(const StopCancelled& event, const State& before, Timestamp) {
  const JobState& job = *before.job(event.job);
  if (!job.attempt->stopping()) return;
  ++count_of(queue_of(job).cancel_eviction, job.attempt->stop->cause);
  progress_[event.job].asked.reset();
}

void SchedulerMetrics::on(const CheckpointReported& event, const State& before, Timestamp now) {
  Progress& progress = progress_[event.job];
  progress.saved = progress.asked.value_or(service_of(*before.job(event.job), now));
}

void SchedulerMetrics::on(const AttemptEnded& event, const State& before, Timestamp now) {
  const JobState& job = *before.job(event.job);
  const AttemptState& attempt = *job.attempt;
  const bool evicted = attempt.stopping() && is_eviction(attempt.stop->cause);
  ++count_of(class_of(job).ended, event.outcome);
  if (evicted) leaving_ms_.at(attempt.stop->cause).observe(now - attempt.stop->began);
  const std::int64_t saved = progress_[event.job].saved;
  progress_.erase(event.job);
  // The work of a service is never repeated, and a job that succeeded has no work to lose.
  if (serves(before, job) || event.outcome == Outcome::kSucceeded) return;
  ended_ =
      Ended{event.job, evicted ? name_of(attempt.stop->cause) : name_of(event.outcome), service_of(job, now) - saved};
}

void SchedulerMetrics::on(const JobRequeued& event, const State& before, Timestamp) {
  if (!ended_ || ended_->job != event.job) return;
  queue_of(*before.job(event.job)).lost[ended_->cause] += ended_->unsaved;
  ended_.reset();
}

void SchedulerMetrics::on(const JobFinished& event, const State& before, Timestamp now) {
  const JobState& job = *before.job(event.job);
  if (job.is_parent()) return;
  ClassCounts& counts = class_of(job);
  ++count_of(counts.finished, event.outcome);
  if (event.outcome == Outcome::kSucceeded) counts.completion_ms.observe(now - job.submitted);
}

void SchedulerMetrics::on_iteration(const IterationWork& work) {
  if (work.append_us) append_us_.observe(*work.append_us);
  if (!work.cycle) return;
  ++cycles_;
  scheduling_attempts_ += work.cycle->scheduling_attempts;
  nodes_scored_ += work.cycle->nodes_scored;
  for (const auto& [code, times] : work.cycle->refused) count_of(refused_, code) += times;
  cycle_us_.observe(work.cycle->took_us);
}

void SchedulerMetrics::add_to(Exposition& out) const {
  add_jobs(out);
  add_stops(out);
  add_times(out);
  add_loop(out);
}

void SchedulerMetrics::add_jobs(Exposition& out) const {
  const auto each_class = [&](auto&& visit) {
    for (const auto& [queue, counts] : queues_) {
      for (const auto& [job_class, of_class] : counts.classes) visit(queue, name_of(job_class), of_class);
    }
  };
  const auto add = [&](std::string_view name, std::string_view help, std::uint64_t ClassCounts::*count) {
    out.begin(name, MetricType::kCounter, help);
    each_class([&](const std::string& queue, std::string_view of, const ClassCounts& counts) {
      out.add({{"queue", queue}, {"class", of}}, whole(counts.*count));
    });
  };
  const auto add_by_outcome = [&](std::string_view name, std::string_view help, Counts<Outcome> ClassCounts::*counted) {
    out.begin(name, MetricType::kCounter, help);
    each_class([&](const std::string& queue, std::string_view of, const ClassCounts& counts) {
      for_each_of<Outcome>([&](Outcome outcome) {
        out.add({{"queue", queue}, {"class", of}, {"outcome", name_of(outcome)}},
                whole((counts.*counted)[static_cast<std::size_t>(outcome)]));
      });
    });
  };
  add("berth_submitted_jobs_total", "Jobs that were accepted.", &ClassCounts::submitted);
  add("berth_started_attempts_total", "Starts of jobs, first ones and restarts.", &ClassCounts::started);
  add("berth_restarts_total", "Starts of jobs that had run before.", &ClassCounts::restarts);
  add("berth_out_of_memory_tasks_total", "Tasks that were killed because they used more memory than they have.",
      &ClassCounts::out_of_memory);
  add_by_outcome("berth_ended_attempts_total", "Attempts that ended, by how.", &ClassCounts::ended);
  add_by_outcome("berth_finished_jobs_total", "Jobs that are over for good, by how.", &ClassCounts::finished);
}

void SchedulerMetrics::add_stops(Exposition& out) const {
  const auto add_by_cause = [&](std::string_view name, std::string_view help, Counts<StopCause> QueueCounts::*counted) {
    out.begin(name, MetricType::kCounter, help);
    for (const auto& [queue, counts] : queues_) {
      for (const auto& [cause, leaving] : leaving_ms_) {
        out.add({{"queue", queue}, {"cause", name_of(cause)}},
                whole((counts.*counted)[static_cast<std::size_t>(cause)]));
      }
    }
  };
  add_by_cause("berth_evictions_total", "Running attempts that were asked to leave, by why.", &QueueCounts::evictions);
  add_by_cause("berth_evictions_cancelled_total", "Evictions that were cancelled before the job left.",
               &QueueCounts::cancel_eviction);
  out.begin("berth_lost_gpu_seconds_total", MetricType::kCounter,
            "GPU time since the last checkpoint of attempts whose jobs have to run again, by why they ended.");
  for (const auto& [queue, counts] : queues_) {
    for (const auto& [cause, amount] : counts.lost)
      out.add({{"queue", queue}, {"cause", cause}}, {amount, kGpuMilliMs});
  }
  out.begin("berth_resizes_total", MetricType::kCounter, "Changes in the size of running elastic gangs.");
  for (const auto& [queue, counts] : queues_) {
    out.add({{"queue", queue}, {"direction", "grow"}}, whole(counts.grown));
    out.add({{"queue", queue}, {"direction", "shrink"}}, whole(counts.shrunk));
  }
}

void SchedulerMetrics::add_times(Exposition& out) const {
  const auto add = [&](std::string_view name, std::string_view help, Histogram ClassCounts::*times) {
    out.begin(name, MetricType::kHistogram, help);
    for (const auto& [queue, counts] : queues_) {
      for (const auto& [job_class, of_class] : counts.classes) {
        out.add({{"queue", queue}, {"class", name_of(job_class)}}, of_class.*times);
      }
    }
  };
  add("berth_wait_seconds", "How long jobs waited, free to start, until their first start.", &ClassCounts::wait_ms);
  add("berth_completion_seconds", "From submission to end, of jobs that succeeded.", &ClassCounts::completion_ms);
  out.begin("berth_eviction_seconds", MetricType::kHistogram,
            "From being asked to leave to being gone, of attempts that left.");
  for (const auto& [cause, times] : leaving_ms_) out.add({{"cause", name_of(cause)}}, times);
}

void SchedulerMetrics::add_loop(Exposition& out) const {
  out.add_single("berth_cycles_total", MetricType::kCounter, "Scheduling cycles.", whole(cycles_));
  out.add_single("berth_scheduling_attempts_total", MetricType::kCounter, "Times that a cycle tried a job.",
                 whole(scheduling_attempts_));
  out.begin("berth_refusals_total", MetricType::kCounter,
            "Times that a cycle refused a job, which stands for all of its queue and shape, by what refused it.");
  for_each_of<ReasonCode>([&](ReasonCode code) {
    out.add({{"reason", name_of(code)}}, whole(refused_[static_cast<std::size_t>(code)]));
  });
  out.add_single("berth_nodes_scored_total", MetricType::kCounter, "Nodes that were looked at for a place.",
                 whole(nodes_scored_));
  out.begin("berth_cycle_seconds", MetricType::kHistogram, "How long cycles took to decide.");
  out.add({}, cycle_us_);
  out.begin("berth_append_seconds", MetricType::kHistogram,
            "How long batches of events took to be written and synced.");
  out.add({}, append_us_);
}

}  // namespace berth::daemon

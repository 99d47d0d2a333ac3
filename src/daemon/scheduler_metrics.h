#pragma once
// Counters and histograms of the scheduler, folded from durable events and from the work of the iterations. The reader
// keeps them. They begin at zero with the process, as Prometheus expects of counters. Gauges of the present are read
// from the state at each request instead (state_gauges.h).
//
// Jobs are those with tasks of their own: replicas and elements, not their services and arrays. The words are those of
// the simulator's report (sim/measure) where both have them: a restart is a start after the first.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/event.h"
#include "model/plan.h"
#include "model/reason.h"
#include "state/state.h"
#include "telemetry/exposition.h"

namespace berth::daemon {

struct CycleWork {
  std::uint64_t scheduling_attempts = 0;
  std::uint64_t nodes_scored = 0;
  std::map<ReasonCode, std::uint64_t> refused;  // of the jobs that were tried
  std::int64_t took_us = 0;
};
CycleWork work_of(const Plan& plan, std::int64_t took_us);

// The cost of one iteration of the loop.
struct IterationWork {
  std::optional<CycleWork> cycle;
  std::optional<std::int64_t> append_us;
};

class SchedulerMetrics {
 public:
  // Counts from this state on. The work of running jobs is taken as saved up to their last checkpoint.
  explicit SchedulerMetrics(const state::State& state);

  // Counts an event. Requires: `before` is the state that has not folded it yet.
  void on_event(const EventRecord& record, const state::State& before);
  void on_iteration(const IterationWork& work);

  void add_to(telemetry::Exposition& out) const;

 private:
  template <class Enum>
  using Counts = std::array<std::uint64_t, EnumNames<Enum>::kNames.size()>;

  struct ClassCounts {
    ClassCounts();
    std::uint64_t submitted = 0;
    std::uint64_t started = 0;
    std::uint64_t restarts = 0;
    std::uint64_t out_of_memory = 0;  // tasks
    Counts<Outcome> ended{};          // attempts
    Counts<Outcome> finished{};       // jobs
    telemetry::Histogram wait_ms;
    telemetry::Histogram completion_ms;
  };
  struct QueueCounts {
    QueueCounts();
    Counts<StopCause> evictions{};
    Counts<StopCause> cancel_eviction{};
    std::uint64_t grown = 0;
    std::uint64_t shrunk = 0;
    std::map<std::string_view, std::int64_t> lost;  // GPU time lost by cause, in milli-GPU x ms
    std::map<JobClass, ClassCounts> classes;
  };
  // For a running attempt: the job's attained service (state/attained_service.h) up to which its work is saved, and the
  // service when the attempt was asked to leave. A job that saves on request saves the work up to that request.
  struct Progress {
    std::int64_t saved = 0;
    std::optional<std::int64_t> asked;
  };
  // An attempt that has just ended: what is lost if its job has to run again.
  struct Ended {
    JobId job;
    std::string_view cause;
    std::int64_t unsaved = 0;
  };

  void on(const ClusterConfigured& event, const state::State& before, Timestamp now);
  void on(const JobSubmitted& event, const state::State& before, Timestamp now);
  void on(const AttemptStarted& event, const state::State& before, Timestamp now);
  void on(const AttemptGrown& event, const state::State& before, Timestamp now);
  void on(const AttemptShrunk& event, const state::State& before, Timestamp now);
  void on(const TaskExited& event, const state::State& before, Timestamp now);
  void on(const StopBegan& event, const state::State& before, Timestamp now);
  void on(const StopCancelled& event, const state::State& before, Timestamp now);
  void on(const CheckpointReported& event, const state::State& before, Timestamp now);
  void on(const AttemptEnded& event, const state::State& before, Timestamp now);
  void on(const JobRequeued& event, const state::State& before, Timestamp now);
  void on(const JobFinished& event, const state::State& before, Timestamp now);
  template <class Other>
  void on(const Other&, const state::State&, Timestamp) {}

  QueueCounts& queue_of(const state::JobState& job) { return queues_[job.spec.queue]; }
  ClassCounts& class_of(const state::JobState& job) { return queue_of(job).classes[job.spec.job_class]; }

  void add_leaves(const ClusterConfig& config);

  void add_jobs(telemetry::Exposition& out) const;
  void add_stops(telemetry::Exposition& out) const;
  void add_times(telemetry::Exposition& out) const;
  void add_loop(telemetry::Exposition& out) const;

  std::map<std::string, QueueCounts> queues_;  // leaf queues, removed ones included
  std::map<JobId, Progress> progress_;         // of running attempts
  std::optional<Ended> ended_;
  std::map<StopCause, telemetry::Histogram> leaving_ms_;
  std::uint64_t cycles_ = 0;
  std::uint64_t scheduling_attempts_ = 0;
  std::uint64_t nodes_scored_ = 0;
  Counts<ReasonCode> refused_{};
  telemetry::Histogram cycle_us_;
  telemetry::Histogram append_us_;
};

}  // namespace berth::daemon

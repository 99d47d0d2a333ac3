#pragma once
// For tests: a small fleet driven by commands through whole iterations. Their events are folded one by one beside the
// metrics, as in the reader.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "control/iteration.h"
#include "daemon/scheduler_metrics.h"
#include "daemon/state_gauges.h"
#include "explain/pending_reason.h"
#include "sched/cycle.h"
#include "support/fleet_fixture.h"

namespace berth::daemon {

// The name of a series of a queue.
inline std::string of(const std::string& name, const std::string& queue, const std::string& more = "") {
  return name + "{queue=\"" + queue + "\"" + (more.empty() ? "" : "," + more) + "}";
}

class MetricsStory {
 public:
  // Two queues, each guaranteed four of eight GPUs of one node.
  MetricsStory() {
    std::vector<QueueConfig> queues = {FleetFixture::queue("a"), FleetFixture::queue("b")};
    for (QueueConfig& queue : queues) queue.guaranteed.gpu_milli = 4000;
    run(ApplyConfig{FleetFixture::config(queues), "op"});
    run(RegisterNode{FleetFixture::node("n1", 8)});
  }

  control::Reply run(const Command& command) {
    const std::vector<Command> commands{command};
    control::Iteration iteration = take_iteration(commands);
    const auto reply = iteration.replies.front();
    REQUIRE_MESSAGE(reply.has_value(), (reply ? "" : reply.error().message));
    reconcile(iteration);
    return *reply;
  }
  void after(std::int64_t seconds) {
    now.ms += seconds * 1000;
    control::Iteration iteration = take_iteration({});
    reconcile(iteration);
  }

  JobId submit(const JobSpec& spec) { return run(SubmitJob{spec, ""}).job; }
  JobId submit(const std::string& queue, std::int32_t gpus) { return submit(FleetFixture::job(queue, 1, gpus)); }
  void exit(JobId job, std::int32_t code) {
    const auto& attempt = *working.job(job)->attempt;
    const std::uint32_t number = attempt.number;
    const auto tasks = static_cast<std::uint32_t>(attempt.tasks.size());
    for (std::uint32_t task = 0; task < tasks; ++task) {
      run(ReportTaskExited{{job, number, task, 1, ExitReason::kExited, code, ""}});
    }
  }
  void save(JobId job, std::int64_t step) { run(ReportCheckpoint{job, working.job(job)->attempt->number, step}); }
  bool runs(JobId job) const { return working.job(job) != nullptr && working.job(job)->attempt.has_value(); }

  // Returns the printed value of a series, or "" if there is none.
  std::string operator[](const std::string& series) {
    telemetry::Exposition out;
    explain::PendingReasons pending_reason(folded, now);
    add_gauges(api::View{folded, now, std::ref(pending_reason), [this] { return gpu_utilization; }}, out);
    metrics.add_to(out);
    const std::string text = "\n" + out.take();
    const std::size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) return "";
    const std::size_t from = at + series.size() + 2;
    return text.substr(from, text.find('\n', from) - from);
  }

  // Restarts the metrics, as a restart of the server does.
  void forget() { metrics = SchedulerMetrics(folded); }

  state::State working;
  state::State folded;
  SchedulerMetrics metrics{folded};
  GpuUtilization gpu_utilization;  // utilization that a test sets
  Timestamp now{1'000'000};
  std::uint64_t nodes_scored = 0;  // nodes scored by all cycles

 private:
  control::Iteration take_iteration(const std::vector<Command>& commands) {
    control::Iteration iteration =
        control::run_iteration(working, now, commands, memory_,
                               [&](state::State& state, Timestamp at) { return sched::run_cycle(state, at); });
    nodes_scored += iteration.plan.nodes_scored;
    IterationWork work;
    if (iteration.cycle_ran) work.cycle = work_of(iteration.plan, 1500);
    if (!iteration.records.empty()) work.append_us = 700;
    metrics.on_iteration(work);
    for (const EventRecord& record : iteration.records) {
      metrics.on_event(record, folded);
      folded.apply(record);
    }
    return iteration;
  }
  void reconcile(const control::Iteration& first) {
    for (bool again = first.again; again;) again = take_iteration({}).again;
  }

  control::IterationMemory memory_;
};

}  // namespace berth::daemon

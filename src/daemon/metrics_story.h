#pragma once
// For tests: a small fleet driven by commands through whole turns, whose events are then folded one by one, as the
// reader does it, beside the metrics.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "control/turn.h"
#include "daemon/scheduler_metrics.h"
#include "daemon/state_gauges.h"
#include "sched/blocking.h"
#include "sched/cycle.h"
#include "sched/fleet_fixture.h"

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
    control::Turn turn = take_turn(commands);
    const auto reply = turn.replies.front();
    REQUIRE_MESSAGE(reply.has_value(), (reply ? "" : reply.error().message));
    settle(turn);
    return *reply;
  }
  void after(std::int64_t seconds) {
    now.ms += seconds * 1000;
    control::Turn turn = take_turn({});
    settle(turn);
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

  // The value of a series, as it is printed; empty where there is none.
  std::string operator[](const std::string& series) {
    telemetry::Exposition out;
    sched::BlockingOfMany blocking(folded, now);
    add_gauges(api::View{folded, now, std::ref(blocking), [this] { return driven; }}, out);
    metrics.add_to(out);
    const std::string text = "\n" + out.take();
    const std::size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) return "";
    const std::size_t from = at + series.size() + 2;
    return text.substr(from, text.find('\n', from) - from);
  }

  // As after a restart of the server.
  void forget() { metrics = SchedulerMetrics(folded); }

  state::State working;
  state::State folded;
  SchedulerMetrics metrics{folded};
  Driven driven;  // as if it had been measured
  Timestamp now{1'000'000};
  std::uint64_t nodes_scored = 0;  // by all cycles

 private:
  control::Turn take_turn(const std::vector<Command>& commands) {
    control::Turn turn = control::run_turn(working, now, commands, memory_, [&](state::State& state, Timestamp at) {
      return sched::run_cycle(state, at);
    });
    nodes_scored += turn.plan.nodes_scored;
    TurnWork work;
    if (turn.cycle_ran) work.cycle = work_of(turn.plan, 1500);
    if (!turn.records.empty()) work.append_us = 700;
    metrics.on_turn(work);
    for (const EventRecord& record : turn.records) {
      metrics.on_event(record, folded);
      folded.apply(record);
    }
    return turn;
  }
  void settle(const control::Turn& first) {
    for (bool again = first.again; again;) again = take_turn({}).again;
  }

  control::TurnMemory memory_;
};

}  // namespace berth::daemon

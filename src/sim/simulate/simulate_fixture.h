#pragma once
// Jobs, traces and policies for tests, and their runs.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/simulate/run.h"
#include "sim/trace/shape.h"

namespace berth::sim {

inline TraceJob job(const std::string& id, double submit_s, double run_s, std::int64_t gpus) {
  TraceJob one;
  one.id = id;
  one.tenant = "lab";
  one.submit_ms = static_cast<std::int64_t>(submit_s * 1000);
  one.duration_ms = static_cast<std::int64_t>(run_s * 1000);
  one.gpus_per_worker = gpus;
  one.workers = 1;
  return one;
}

inline TraceJob share(const std::string& id, std::int64_t milli) {
  TraceJob one = job(id, 0, 1, 1);
  one.gpu_milli = milli;
  return one;
}

inline Trace trace_of(const std::string& fleet, std::vector<TraceJob> jobs) {
  Trace trace;
  CHECK(add_fleet_shape(fleet, trace).has_value());
  trace.jobs = std::move(jobs);
  return trace;
}

inline PolicySpec policy(const std::string& name) {
  const auto found = find_policy(name);
  REQUIRE(found.has_value());
  return *found;
}

inline PolicySpec attained_service(const std::string& thresholds) {
  const auto read = read_policy_text(
      "las.yaml", "{name: las, order: attained-service, preemption: {thresholds_gpu_s: [" + thresholds + "]}}");
  REQUIRE(read.has_value());
  return *read;
}

inline RunResult run(const Trace& trace, const PolicySpec& spec, const std::vector<OverlayQueue>& queues = {}) {
  const auto workload = make_workload(trace, queues);
  REQUIRE_MESSAGE(workload.has_value(), (workload ? "" : workload.error().message));
  auto result = run_by_clock({*workload, spec, 42, true, nullptr});
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message));
  return std::move(*result);
}

inline double wait_s(const RunResult& result, std::size_t index) {
  const auto wait = waiting_ms(result.jobs[index]);
  REQUIRE(wait.has_value());
  return static_cast<double>(*wait) / 1000;
}

inline Trace crowded_trace() {
  std::vector<TraceJob> jobs;
  for (int i = 0; i < 60; ++i) jobs.push_back(job("j" + std::to_string(i), i % 7, 3 + i % 11, 1 + i % 4));
  return trace_of("3x4xA100", std::move(jobs));
}

}  // namespace berth::sim

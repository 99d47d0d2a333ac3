#include "sim/report/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace berth::sim {
namespace {

template <auto Member>
std::optional<double> member(const RunMeasures& run) {
  return run.*Member;
}

// What only a run by the clock has; in an order of arrival without times it is absent rather than 0.
template <auto Member>
std::optional<double> by_clock(const RunMeasures& run) {
  if (run.in_order) return std::nullopt;
  return static_cast<double>(run.*Member);
}

std::optional<double> refused(const RunMeasures& run) { return static_cast<double>(run.refused); }

using Group = Distribution GroupMeasures::*;
using Statistic = double Distribution::*;

// A statistic over the jobs of a run; absent when there are none.
template <Group group, Statistic statistic>
std::optional<double> over_jobs(const RunMeasures& run) {
  const Distribution& distribution = run.all.*group;
  if (distribution.count == 0) return std::nullopt;
  return distribution.*statistic;
}

std::optional<double> makespan(const RunMeasures& run) {
  if (run.completed == 0) return std::nullopt;
  return run.makespan_s;
}

std::optional<double> longest_queue(const RunMeasures& run) {
  if (!run.max_queue_length) return std::nullopt;
  return static_cast<double>(*run.max_queue_length);
}

std::string with_decimals(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

// 1234567.8 -> "1,234,567.8"
std::string grouped(double value, int decimals) {
  std::string text = with_decimals(value, decimals);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  std::size_t point = std::min(text.find('.'), text.size());
  while (point > first + 3) {
    point -= 3;
    text.insert(point, ",");
  }
  return text;
}

std::string format_seconds(double seconds) {
  const double size = std::abs(seconds);
  if (size == 0) return "0 s";
  if (size < 120) return with_decimals(seconds, size < 10 ? 2 : 1) + " s";
  if (size < 7200) return with_decimals(seconds / 60, 1) + " min";
  if (size < 4 * 86'400.0) return with_decimals(seconds / 3600, 2) + " h";
  return with_decimals(seconds / 86'400, 1) + " d";
}

// Four digits say enough about a ratio of any size.
std::string format_ratio(double value) {
  const double size = std::abs(value);
  return grouped(value, size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0);
}

}  // namespace

const std::vector<Metric>& metrics() {
  using M = RunMeasures;
  using G = GroupMeasures;
  using D = Distribution;
  static const std::vector<Metric> kMetrics = {
      {"gpu_allocation_pct", "GPUs allocated", "Fleet", MetricUnit::kPercent, Better::kHigher,
       member<&M::gpu_allocation_pct>},
      {"gpu_allocation_at_100_pct", "allocated at 100 % arrived", "Fleet", MetricUnit::kPercent, Better::kHigher,
       member<&M::gpu_allocation_at_100_pct>},
      {"gpu_allocation_at_130_pct", "allocated at 130 % arrived", "Fleet", MetricUnit::kPercent, Better::kHigher,
       member<&M::gpu_allocation_at_130_pct>},
      {"fragmentation_pct", "fragmented, of capacity", "Fleet", MetricUnit::kPercent, Better::kLower,
       member<&M::fragmentation_pct>},
      {"fragmentation_of_idle_pct", "fragmented, of idle", "Fleet", MetricUnit::kPercent, Better::kLower,
       member<&M::fragmentation_of_idle_pct>},
      {"utilization_pct", "allocated until the last completion", "Fleet", MetricUnit::kPercent, Better::kHigher,
       member<&M::utilization_pct>, true},
      {"makespan_s", "makespan", "Fleet", MetricUnit::kSeconds, Better::kLower, makespan, true},
      {"mean_wait_s", "waiting, mean", "Jobs", MetricUnit::kSeconds, Better::kLower, over_jobs<&G::wait_s, &D::mean>,
       true},
      {"p50_wait_s", "waiting, median", "Jobs", MetricUnit::kSeconds, Better::kLower, over_jobs<&G::wait_s, &D::p50>,
       true},
      {"p90_wait_s", "waiting, p90", "Jobs", MetricUnit::kSeconds, Better::kLower, over_jobs<&G::wait_s, &D::p90>,
       true},
      {"p99_wait_s", "waiting, p99", "Jobs", MetricUnit::kSeconds, Better::kLower, over_jobs<&G::wait_s, &D::p99>,
       true},
      {"max_wait_s", "waiting, longest", "Jobs", MetricUnit::kSeconds, Better::kLower, over_jobs<&G::wait_s, &D::max>,
       true},
      {"mean_wait_at_least_s", "waiting, mean of all, at least", "Jobs", MetricUnit::kSeconds, Better::kLower,
       over_jobs<&G::wait_at_least_s, &D::mean>, true},
      {"max_wait_at_least_s", "waiting, longest of all, at least", "Jobs", MetricUnit::kSeconds, Better::kLower,
       over_jobs<&G::wait_at_least_s, &D::max>, true},
      {"mean_jct_s", "completion time, mean", "Jobs", MetricUnit::kSeconds, Better::kLower,
       over_jobs<&G::jct_s, &D::mean>, true},
      {"p99_jct_s", "completion time, p99", "Jobs", MetricUnit::kSeconds, Better::kLower, over_jobs<&G::jct_s, &D::p99>,
       true},
      {"mean_slowdown", "slowdown, mean", "Jobs", MetricUnit::kRatio, Better::kLower, over_jobs<&G::slowdown, &D::mean>,
       true},
      {"p50_slowdown", "slowdown, median", "Jobs", MetricUnit::kRatio, Better::kLower, over_jobs<&G::slowdown, &D::p50>,
       true},
      {"p90_slowdown", "slowdown, p90", "Jobs", MetricUnit::kRatio, Better::kLower, over_jobs<&G::slowdown, &D::p90>,
       true},
      {"p99_slowdown", "slowdown, p99", "Jobs", MetricUnit::kRatio, Better::kLower, over_jobs<&G::slowdown, &D::p99>,
       true},
      {"max_slowdown", "slowdown, largest", "Jobs", MetricUnit::kRatio, Better::kLower,
       over_jobs<&G::slowdown, &D::max>, true},
      {"mean_queue_length", "jobs waiting, mean", "Jobs", MetricUnit::kCount, Better::kLower,
       member<&M::mean_queue_length>},
      {"max_queue_length", "jobs waiting, most", "Jobs", MetricUnit::kCount, Better::kLower, longest_queue},
      {"completed", "jobs completed", "Jobs", MetricUnit::kCount, Better::kNeither, by_clock<&M::completed>},
      {"refused", "jobs refused", "Jobs", MetricUnit::kCount, Better::kNeither, refused},
      {"waiting_at_end", "jobs still waiting at the end", "Jobs", MetricUnit::kCount, Better::kLower,
       by_clock<&M::waiting_at_end>},
      {"running_at_end", "jobs still running at the end", "Jobs", MetricUnit::kCount, Better::kNeither,
       by_clock<&M::running_at_end>},
      {"jain_index", "Jain's index", "Fairness", MetricUnit::kRatio, Better::kHigher, member<&M::jain_index>},
      {"mean_share_gap_pct", "dominant-share gap, mean", "Fairness", MetricUnit::kPercent, Better::kLower,
       member<&M::mean_share_gap_pct>},
      {"max_share_gap_pct", "dominant-share gap, largest", "Fairness", MetricUnit::kPercent, Better::kLower,
       member<&M::max_share_gap_pct>},
      {"guarantee_violation_s", "guarantees violated", "Fairness", MetricUnit::kSeconds, Better::kLower,
       by_clock<&M::guarantee_violation_s>},
      {"guarantee_shortfall_gpu_h", "GPU-hours short of guarantees", "Fairness", MetricUnit::kGpuHours, Better::kLower,
       by_clock<&M::guarantee_shortfall_gpu_h>},
      {"guarantee_breached_s", "guarantees breached", "Fairness", MetricUnit::kSeconds, Better::kLower,
       by_clock<&M::guarantee_breached_s>},
      {"guarantee_unserved_s", "guarantees breached, unserved", "Fairness", MetricUnit::kSeconds, Better::kLower,
       by_clock<&M::guarantee_unserved_s>},
      {"guarantee_leaving_s", "guarantees breached, victims leaving", "Fairness", MetricUnit::kSeconds, Better::kLower,
       by_clock<&M::guarantee_leaving_s>},
      {"guarantee_no_place_s", "guarantees breached, no place", "Fairness", MetricUnit::kSeconds, Better::kLower,
       by_clock<&M::guarantee_no_place_s>},
      {"preemptions", "preemptions", "Cost", MetricUnit::kCount, Better::kLower, by_clock<&M::preemptions>},
      {"restarts", "restarts", "Cost", MetricUnit::kCount, Better::kLower, by_clock<&M::restarts>},
      {"moves", "moves", "Cost", MetricUnit::kCount, Better::kNeither, by_clock<&M::moves>},
      {"gpu_hours_lost", "GPU-hours lost", "Cost", MetricUnit::kGpuHours, Better::kLower, by_clock<&M::gpu_hours_lost>},
      {"gpu_hours_useful", "GPU-hours useful", "Cost", MetricUnit::kGpuHours, Better::kNeither,
       by_clock<&M::gpu_hours_useful>},
      {"energy_kwh", "energy of GPUs, kWh", "Cost", MetricUnit::kKilowattHours, Better::kLower, member<&M::energy_kwh>},
      {"energy_busy_kwh", "energy of allocated GPUs, kWh", "Cost", MetricUnit::kKilowattHours, Better::kLower,
       member<&M::energy_busy_kwh>},
  };
  return kMetrics;
}

std::vector<MeasuredRun> measure_runs(const std::vector<RunResult>& runs) {
  std::vector<MeasuredRun> measured;
  measured.reserve(runs.size());
  for (const RunResult& run : runs) {
    const MeasureInput input{run.jobs,
                             run.fleet,
                             run.arrivals,
                             run.fairness,
                             run.capacity_gpu_milli,
                             run.end_ms,
                             run.dropped,
                             run.guarantees_breached,
                             run.energy};
    measured.push_back({&run, measure_run(input)});
  }
  return measured;
}

std::vector<std::string> policies_of(const std::vector<MeasuredRun>& runs) {
  std::vector<std::string> policies;
  for (const MeasuredRun& run : runs) {
    const std::string& name = run.result->policy;
    if (std::find(policies.begin(), policies.end(), name) == policies.end()) policies.push_back(name);
  }
  return policies;
}

std::map<std::string, std::int64_t> refusals_of(const std::vector<MeasuredRun>& runs, std::string_view policy) {
  const auto first =
      std::find_if(runs.begin(), runs.end(), [&](const MeasuredRun& run) { return run.result->policy == policy; });
  return first == runs.end() ? std::map<std::string, std::int64_t>() : first->result->refused_because;
}

BySeed values_by_seed(const std::vector<MeasuredRun>& runs, std::string_view policy, const Metric& metric) {
  BySeed values;
  for (const MeasuredRun& run : runs) {
    if (run.result->policy != policy) continue;
    if (const auto value = metric.value(run.measures)) values[run.result->seed] = *value;
  }
  return values;
}

bool seed_changes_nothing(const std::vector<MeasuredRun>& runs, std::string_view policy) {
  const auto count =
      std::count_if(runs.begin(), runs.end(), [&](const MeasuredRun& run) { return run.result->policy == policy; });
  const bool varies = std::any_of(metrics().begin(), metrics().end(), [&](const Metric& metric) {
    const BySeed values = values_by_seed(runs, policy, metric);
    return std::any_of(values.begin(), values.end(),
                       [&](const auto& entry) { return entry.second != values.begin()->second; });
  });
  return count > 1 && !varies;
}

std::string policies_blind_to_seeds(const std::vector<MeasuredRun>& runs) {
  std::string blind;
  for (const std::string& policy : policies_of(runs)) {
    if (seed_changes_nothing(runs, policy)) blind += (blind.empty() ? "" : ", ") + policy;
  }
  return blind;
}

std::string format_value(double value, MetricUnit unit) {
  switch (unit) {
    case MetricUnit::kPercent:
      return with_decimals(value, 2) + " %";
    case MetricUnit::kSeconds:
      return format_seconds(value);
    case MetricUnit::kCount:
      return grouped(value, value == std::floor(value) ? 0 : 1);
    case MetricUnit::kGpuHours:
    case MetricUnit::kKilowattHours:
      return grouped(value, 1);
    case MetricUnit::kRatio:
      return format_ratio(value);
  }
  return "?";
}

std::string format_difference(double value, MetricUnit unit) {
  const std::string sign = value > 0 ? "+" : "";
  // The difference of two percentages is in points, not in percent: no sign after it.
  if (unit == MetricUnit::kPercent) return sign + with_decimals(value, 2);
  return sign + format_value(value, unit);
}

}  // namespace berth::sim

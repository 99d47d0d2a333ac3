#include "sim/report/curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/measure/fairness.h"

namespace berth::sim {
namespace {

template <class Value>
Curve job_distribution(const RunResult& run, Value value) {
  std::vector<double> values;
  for (const JobOutcome& job : run.jobs) {
    if (const auto one = value(job)) values.push_back(static_cast<double>(*one));
  }
  return distribution_curve(std::move(values));
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::optional<double> in_seconds(const std::optional<std::int64_t>& ms) {
  if (!ms) return std::nullopt;
  return static_cast<double>(*ms) / 1000;
}

}  // namespace

double four_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::int64_t drawn_end_ms(const RunResult& run) {
  constexpr std::int64_t kLeastDrainMs = 3'600'000;
  if (run.jobs.empty()) return run.end_ms;
  const auto [first, last] =
      std::minmax_element(run.jobs.begin(), run.jobs.end(),
                          [](const JobOutcome& a, const JobOutcome& b) { return a.submit_ms < b.submit_ms; });
  const std::int64_t drain_ms = std::max((last->submit_ms - first->submit_ms) / 4, kLeastDrainMs);
  return std::min(run.end_ms, last->submit_ms + drain_ms);
}

RunCurves curves_of(const RunResult& run, int stretches, std::int64_t end_ms) {
  const auto over_fleet = [&](const std::function<double(const FleetSample&)>& value) {
    return curve_over_time<FleetSample>(run.fleet, end_ms, value, stretches);
  };
  const auto over_fairness = [&](const std::function<double(const FairnessSample&)>& value) {
    return curve_over_time<FairnessSample>(run.fairness, end_ms, value, stretches);
  };
  const auto over_load = [&](const std::function<std::int64_t(const ArrivalSample&)>& value) {
    return curve_over_load(run.arrivals, run.capacity_gpu_milli, value);
  };
  RunCurves curves;
  curves.allocation = over_load([](const ArrivalSample& s) { return s.allocated_gpu_milli; });
  curves.fragmentation = over_load([](const ArrivalSample& s) { return s.fragmented_gpu_milli; });
  curves.wait_s = job_distribution(run, [](const JobOutcome& job) { return in_seconds(waiting_ms(job)); });
  curves.jct_s = job_distribution(run, [](const JobOutcome& job) { return in_seconds(completion_ms(job)); });
  curves.utilization =
      over_fleet([](const FleetSample& s) { return percent(s.allocated_gpu_milli, s.capacity_gpu_milli); });
  curves.fragmented =
      over_fleet([](const FleetSample& s) { return percent(s.fragmented_gpu_milli, s.capacity_gpu_milli); });
  curves.queue_jobs = over_fleet([](const FleetSample& s) { return static_cast<double>(s.waiting_jobs); });
  curves.queue_gpus = over_fleet([](const FleetSample& s) { return static_cast<double>(s.waiting_gpu_milli) / 1000; });
  curves.share_gap = over_fairness([](const FairnessSample& s) { return fairness_at(s).gap_pct; });
  curves.jain = over_fairness([](const FairnessSample& s) { return fairness_at(s).jain.value_or(1); });
  return curves;
}

}  // namespace berth::sim

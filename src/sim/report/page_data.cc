#include "sim/report/page_data.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "sim/measure/fairness.h"
#include "sim/report/downsample.h"
#include "sim/report/escape.h"

namespace berth::sim {
namespace {

namespace json = boost::json;

// Four significant digits: finer than a pixel, and a quarter of the bytes.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

json::array points(const Curve& curve) {
  json::array array;
  for (const auto& [x, y] : curve) array.push_back(json::array{rounded(x), rounded(y)});
  return array;
}

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

json::object curves_of(const RunResult& run) {
  const auto over_fleet = [&run](const std::function<double(const FleetSample&)>& value) {
    return points(curve_over_time<FleetSample>(run.fleet, run.end_ms, value));
  };
  const auto over_fairness = [&run](const std::function<double(const FairnessSample&)>& value) {
    return points(curve_over_time<FairnessSample>(run.fairness, run.end_ms, value));
  };
  const auto over_load = [&run](const std::function<std::int64_t(const ArrivalSample&)>& value) {
    return points(curve_over_load(run.arrivals, run.capacity_gpu_milli, value));
  };
  const auto seconds = [](const std::optional<std::int64_t>& ms) -> std::optional<double> {
    if (!ms) return std::nullopt;
    return static_cast<double>(*ms) / 1000;
  };
  return {
      {"allocation", over_load([](const ArrivalSample& s) { return s.allocated_gpu_milli; })},
      {"fragmentation", over_load([](const ArrivalSample& s) { return s.fragmented_gpu_milli; })},
      {"wait", points(job_distribution(run, [&](const JobOutcome& job) { return seconds(waiting_ms(job)); }))},
      {"jct", points(job_distribution(run, [&](const JobOutcome& job) { return seconds(completion_ms(job)); }))},
      {"utilization",
       over_fleet([](const FleetSample& s) { return percent(s.allocated_gpu_milli, s.capacity_gpu_milli); })},
      {"fragmented",
       over_fleet([](const FleetSample& s) { return percent(s.fragmented_gpu_milli, s.capacity_gpu_milli); })},
      {"queue_jobs", over_fleet([](const FleetSample& s) { return static_cast<double>(s.waiting_jobs); })},
      {"queue_gpus", over_fleet([](const FleetSample& s) { return static_cast<double>(s.waiting_gpu_milli) / 1000; })},
      {"gap", over_fairness([](const FairnessSample& s) { return fairness_at(s).gap_pct; })},
      {"jain", over_fairness([](const FairnessSample& s) { return fairness_at(s).jain.value_or(1); })}};
}

json::object gantt_object(const RunResult& run) {
  const GanttImage image = gantt_image(run);
  json::array queues;
  for (const std::string& queue : image.queues) queues.emplace_back(visible_text(queue));
  // One flat list of numbers, five to a cell: an array of objects would be four times the size.
  json::array cells;
  for (const GanttCell& cell : image.cells) {
    for (const int number : {cell.row, cell.column, cell.columns, cell.queue, cell.level}) cells.emplace_back(number);
  }
  return {{"queues", std::move(queues)},
          {"rows", image.rows},
          {"columns", image.columns},
          {"nodes", image.nodes},
          {"start_h", static_cast<double>(image.start_ms) / 3'600'000},
          {"end_h", static_cast<double>(image.end_ms) / 3'600'000},
          {"cells", std::move(cells)}};
}

}  // namespace

std::string page_data(const std::vector<MeasuredRun>& runs) {
  json::array policies;
  for (const std::string& policy : policies_of(runs)) policies.emplace_back(visible_text(policy));
  std::map<std::string, std::size_t> drawn;
  json::array run_array;
  for (const MeasuredRun& run : runs) {
    const std::size_t earlier = drawn[run.result->policy]++;
    if (earlier >= kSeedsDrawn) continue;
    json::object object = {{"policy", visible_text(run.result->policy)},
                           {"seed", std::to_string(run.result->seed)},
                           {"curves", curves_of(*run.result)}};
    // A Gantt shows one run well and ten badly: the first seed of each policy.
    if (earlier == 0 && !run.result->gantt.empty()) object["gantt"] = gantt_object(*run.result);
    run_array.push_back(std::move(object));
  }
  return json::serialize(json::object{{"policies", std::move(policies)}, {"runs", std::move(run_array)}});
}

}  // namespace berth::sim

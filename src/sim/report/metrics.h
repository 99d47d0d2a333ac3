#pragma once
// The scalars that are compared between policies, each with its key in summary.json, its name for people, and which way
// is better. One list, so that summary, page and terminal cannot differ.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measure/over_seeds.h"
#include "sim/measure/run_measures.h"
#include "sim/report/run_result.h"

namespace berth::sim {

enum class MetricUnit { kPercent, kSeconds, kCount, kGpuHours, kKilowattHours, kRatio };
enum class Better { kLower, kHigher, kNeither };

struct Metric {
  std::string_view key;
  std::string_view label;
  std::string_view group;
  MetricUnit unit;
  Better better;
  std::optional<double> (*value)(const RunMeasures&);
  // A statistic of the jobs that completed, or a lower bound for the others: two policies that completed different jobs
  // cannot be told apart by it.
  bool of_completed = false;
};

const std::vector<Metric>& metrics();

// A run with its scalars.
struct MeasuredRun {
  const RunResult* result = nullptr;
  RunMeasures measures;
};

std::vector<MeasuredRun> measure_runs(const std::vector<RunResult>& runs);

// The policies in the order in which they first appear.
std::vector<std::string> policies_of(const std::vector<MeasuredRun>& runs);

// Jobs by the reason why the policy's first run did not let them in.
std::map<std::string, std::int64_t> refusals_of(const std::vector<MeasuredRun>& runs, std::string_view policy);

// The metric's values by seed for one policy; runs in which it is absent are left out.
BySeed values_by_seed(const std::vector<MeasuredRun>& runs, std::string_view policy, const Metric& metric);

// Whether the policy has several runs and all measure the same: an interval of theirs has no width because one trace
// was run several times, not because several traces agree.
bool seed_changes_nothing(const std::vector<MeasuredRun>& runs, std::string_view policy);
// Those policies, joined by commas.
std::string policies_blind_to_seeds(const std::vector<MeasuredRun>& runs);

// "3.85 h", "95.4 %", "1,213"
std::string format_value(double value, MetricUnit unit);
// "+3.1 min"; of percentages in points, without a unit: "-0.42"
std::string format_difference(double value, MetricUnit unit);

}  // namespace berth::sim

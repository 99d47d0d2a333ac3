#pragma once
// The scalars that are compared between policies: each with its key in summary.json, its label, and which direction is
// better. Summary, page and terminal use this one list, so that they cannot differ.

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
  // True for a statistic of completed jobs, or a lower bound for the others. It cannot compare two policies that
  // completed different jobs.
  bool of_completed = false;
};

const std::vector<Metric>& metrics();

// A run and its scalars.
struct MeasuredRun {
  const RunResult* result = nullptr;
  RunMeasures measures;
};

std::vector<MeasuredRun> measure_runs(const std::vector<RunResult>& runs);

// Returns the policies in the order of their first run.
std::vector<std::string> policies_of(const std::vector<MeasuredRun>& runs);

// Returns the number of refused jobs of the policy's first run, by reason.
std::map<std::string, std::int64_t> refusals_of(const std::vector<MeasuredRun>& runs, std::string_view policy);

// Returns the metric by seed for one policy, without runs in which it is absent.
BySeed values_by_seed(const std::vector<MeasuredRun>& runs, std::string_view policy, const Metric& metric);

// Returns true if the policy has several runs and all give the same measures. Then its confidence interval has no width
// because one trace was run several times, not because several traces agree.
bool seed_changes_nothing(const std::vector<MeasuredRun>& runs, std::string_view policy);
// Returns those policies, joined by commas.
std::string policies_blind_to_seeds(const std::vector<MeasuredRun>& runs);

// Returns the value with its unit: "3.85 h", "95.4 %", "1,213".
std::string format_value(double value, MetricUnit unit);
// Returns a difference with sign and unit: "+3.1 min". A difference of percentages is in points, without a unit:
// "-0.42".
std::string format_difference(double value, MetricUnit unit);

}  // namespace berth::sim

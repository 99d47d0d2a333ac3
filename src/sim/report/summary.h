#pragma once
// summary.json and the per-job CSV, for other programs. docs/simulate.md describes the fields of summary.json. Fields
// are added but never renamed. What could not be measured is null.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/metrics.h"
#include "sim/report/run_result.h"

namespace berth::sim {

inline constexpr const char* kSummarySchema = "berth.simulate.summary/1";

boost::json::object input_object(const ReportInput& input);

// Returns summary.json. The first policy is the baseline; the others are compared with it, seed by seed.
std::string summary_json(const ReportInput& input, const std::vector<MeasuredRun>& runs);

struct Comparison {
  std::string policy;
  std::string baseline;
  const Metric* metric = nullptr;
  Estimate difference;  // policy - baseline
  // Jobs that only one of the two completed, over all pairs of runs.
  std::int64_t only_policy = 0;
  std::int64_t only_baseline = 0;

  // Returns true if the metric means the same for both policies. A metric of completed jobs does not if they completed
  // different jobs.
  bool like_with_like() const { return !metric->of_completed || (only_policy == 0 && only_baseline == 0); }
};

std::vector<Comparison> compare_policies(const std::vector<MeasuredRun>& runs);

// Returns a CSV with one row per run and job.
std::string jobs_csv(const std::vector<MeasuredRun>& runs);

}  // namespace berth::sim

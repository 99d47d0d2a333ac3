#pragma once
// summary.json and the per-job CSV: what other programs read. The fields of summary.json are described in
// docs/simulate.md; they are added to, never renamed. What could not be measured is null.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/metrics.h"
#include "sim/report/run_result.h"

namespace berth::sim {

inline constexpr const char* kSummarySchema = "berth.simulate.summary/1";

boost::json::object input_object(const ReportInput& input);

// The first policy is the baseline that the others are compared with, seed by seed.
std::string summary_json(const ReportInput& input, const std::vector<MeasuredRun>& runs);

struct Comparison {
  std::string policy;
  std::string baseline;
  const Metric* metric = nullptr;
  Estimate difference;  // policy - baseline
  // Jobs that the one completed and the other did not, over all pairs of runs.
  std::int64_t only_policy = 0;
  std::int64_t only_baseline = 0;

  // Whether the measure says the same of both: one of completed jobs does not where other jobs completed.
  bool like_with_like() const { return !metric->of_completed || (only_policy == 0 && only_baseline == 0); }
};

std::vector<Comparison> compare_policies(const std::vector<MeasuredRun>& runs);

// One row per run and job.
std::string jobs_csv(const std::vector<MeasuredRun>& runs);

}  // namespace berth::sim

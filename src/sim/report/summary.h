#pragma once
// summary.json and the per-job CSV: what other programs read. The fields of summary.json are described in
// docs/simulate.md; they are added to, never renamed. What could not be measured is null.

#include <boost/json/fwd.hpp>
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
};

std::vector<Comparison> compare_policies(const std::vector<MeasuredRun>& runs);

// One row per run and job.
std::string jobs_csv(const std::vector<MeasuredRun>& runs);

}  // namespace berth::sim

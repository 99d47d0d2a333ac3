#pragma once
// Writes summary.json, jobs.csv and report.html into a folder, which is created if needed. Each file appears complete
// or not at all.

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/report/run_result.h"

namespace berth::sim {

// Creates the folder and tries to write, before the runs, so that an error shows at once.
Result<void> prepare_report(const std::string& folder);

Result<void> write_report(const std::string& folder, const ReportInput& input, const std::vector<RunResult>& runs);

// Returns the table of policies for a terminal: the most important measures, with mean and interval over seeds.
std::string terminal_table(const std::vector<RunResult>& runs);

}  // namespace berth::sim

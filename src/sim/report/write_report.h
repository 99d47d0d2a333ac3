#pragma once
// Writes summary.json, jobs.csv and report.html into a folder, which it makes if need be. Each file appears whole or
// not at all.

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/report/run_result.h"

namespace berth::sim {

// Makes the folder and tries it, before the runs: a report that cannot be written is known at once.
Result<void> prepare_report(const std::string& folder);

Result<void> write_report(const std::string& folder, const ReportInput& input, const std::vector<RunResult>& runs);

// The table of policies for a terminal: the measures that most runs are judged by, mean and interval over seeds.
std::string terminal_table(const std::vector<RunResult>& runs);

}  // namespace berth::sim

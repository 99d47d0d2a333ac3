#pragma once
// The top of report.html: four tiles with the measures that decide, and the groups of jobs that a policy makes wait
// longest. Everything in it is also in the tables below.

#include <optional>
#include <string>
#include <vector>

#include "sim/report/metrics.h"
#include "sim/report/summary.h"

namespace berth::sim {

// Returns "better", "worse" or "same": which way the difference points. With several seeds its interval must not hold
// 0; with one seed there is no interval, and the difference stands as it is. Seeds that change nothing show nothing.
std::string judgement(const Comparison& comparison);

// Returns how much more `value` is than `baseline`: "+12 %", "-4.5 %"; empty if the baseline is 0 or they are equal.
std::string relative_change(double value, double baseline);

// A group of jobs that waits longer under a policy than under the first one.
struct LongerWait {
  std::string policy;
  std::string kind;   // size, queue or class
  std::string group;  // such as "9-64 GPUs"
  double wait_s = 0;  // mean over the seeds, of all jobs that were let in, at least
  double baseline_wait_s = 0;
};

// Returns those that wait at least a quarter and a minute longer, the largest difference first.
std::vector<LongerWait> longer_waits(const std::vector<MeasuredRun>& runs);

std::string headline_section(const std::vector<MeasuredRun>& runs);

}  // namespace berth::sim

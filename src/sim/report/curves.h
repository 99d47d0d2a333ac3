#pragma once
// Curves of a run over time, over arrived load and over its jobs, with few enough points to draw them and to read them
// by program. report.html and summary.json use the same functions, so that they cannot differ.

#include "sim/report/downsample.h"
#include "sim/report/run_result.h"

namespace berth::sim {

struct RunCurves {
  // By arrived load in percent of capacity; empty for a run by the clock. Values in percent of capacity.
  Curve allocation, fragmentation;
  // Of completed jobs: seconds, and the percentage of jobs that took at most so long.
  Curve wait_s, jct_s;
  // By hours since the start; empty for an order of arrival. Percent of capacity, jobs, GPUs, and 0 to 1.
  Curve utilization, fragmented, queue_jobs, queue_gpus, share_gap, jain;
};

// `stretches`: the most points of a curve over time. `end_ms`: where those end.
RunCurves curves_of(const RunResult& run, int stretches, std::int64_t end_ms);

// Returns where the axis of time ends in a drawing: a quarter of the time of arrivals after the last arrival, or the
// end of the run if that is earlier. After it a few long jobs end, and drawn whole they would take most of the width.
std::int64_t drawn_end_ms(const RunResult& run);

// Returns the value with four significant digits: finer than a pixel, and a quarter of the bytes.
double four_digits(double value);

}  // namespace berth::sim

#pragma once
// What a run did over time, over arrived load and over its jobs, as curves of so few points that a page can draw them
// and a program can read them. One place, so that report.html and summary.json cannot differ.

#include "sim/report/downsample.h"
#include "sim/report/run_result.h"

namespace berth::sim {

struct RunCurves {
  // By percent of capacity that has arrived; empty for a run by the clock. Percent of capacity.
  Curve allocation, fragmentation;
  // Over completed jobs: seconds, and the percentage of jobs that took at most so long.
  Curve wait_s, jct_s;
  // By hours since the start; empty for an order of arrival. Percent of capacity, jobs, GPUs, and 0 to 1.
  Curve utilization, fragmented, queue_jobs, queue_gpus, share_gap, jain;
};

// `stretches`: how many points a curve over time has at most.
RunCurves curves_of(const RunResult& run, int stretches);

// Four significant digits: finer than a pixel, and a quarter of the bytes.
double four_digits(double value);

}  // namespace berth::sim

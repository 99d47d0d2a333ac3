#pragma once
// Downsampling: a page can draw less than a run records. The page states these rules:
//
//   over time     400 equal stretches from the first sample to the end, each the time-weighted mean within it
//   over load     one point per whole percent of arrived load, the mean of the samples that round to it
//   distribution  201 values: the percentiles 0, 0.5, ... 100 by nearest rank
//   Gantt         at most 64 rows of neighbouring nodes and 240 columns of time. A cell has the colour of the queue
//   that
//                 holds most of it, and the strength of its occupancy; the 11 largest queues have colours of their own

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/measure/series.h"
#include "sim/report/run_result.h"

namespace berth::sim {

inline constexpr int kCurvePoints = 400;
inline constexpr int kQuantiles = 201;
inline constexpr int kGanttRows = 64;
inline constexpr int kGanttColumns = 240;
inline constexpr int kGanttQueues = 12;  // the last one is "others"
inline constexpr int kGanttLevels = 8;   // strengths of a cell, 1 to 8

using Curve = std::vector<std::pair<double, double>>;

// Returns the curve; x is in hours. `value` is called once for each sample and stretch that overlap.
template <class Sample>
Curve curve_over_time(const std::vector<Sample>& samples, std::int64_t end_ms,
                      const std::function<double(const Sample&)>& value, int stretches = kCurvePoints);

// Returns the curve; x and y are in percent of capacity.
Curve curve_over_load(const std::vector<ArrivalSample>& samples, std::int64_t capacity_gpu_milli,
                      const std::function<std::int64_t(const ArrivalSample&)>& value);

// Returns the curve: x is the value, y the percentage of values that do not exceed it.
Curve distribution_curve(std::vector<double> values);

struct GanttCell {
  int row = 0;
  int column = 0;
  int columns = 1;  // number of columns that this cell covers
  int queue = 0;    // index into GanttImage::queues
  int level = 1;    // 1..kGanttLevels
};

struct GanttImage {
  std::vector<std::string> queues;  // the largest first; "others" last if there are more
  int rows = 0;
  int columns = 0;
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  std::size_t nodes = 0;
  std::vector<GanttCell> cells;
};

GanttImage gantt_image(const RunResult& run);

}  // namespace berth::sim

#include "sim/report/downsample.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>

#include "base/checked.h"
#include "sim/measure/distribution.h"
#include "sim/measure/run_measures.h"
#include "sim/measure/step.h"
#include "sim/report/curves.h"

namespace berth::sim {
namespace {

constexpr double kHourMs = 3'600'000;

// The i-th of `parts` borders of [start, end), exactly and without gaps.
std::int64_t border(std::int64_t start, std::int64_t end, int i, int parts) {
  return start + static_cast<std::int64_t>(Int128{end - start} * i / parts);
}

}  // namespace

template <class Sample>
Curve curve_over_time(const std::vector<Sample>& samples, std::int64_t end_ms,
                      const std::function<double(const Sample&)>& value, int stretches) {
  Curve curve;
  if (samples.empty() || end_ms <= samples.front().at_ms) return curve;
  const std::int64_t start_ms = samples.front().at_ms;
  const int parts = static_cast<int>(std::min<std::int64_t>(stretches, end_ms - start_ms));
  std::size_t at = 0;
  for (int part = 0; part < parts; ++part) {
    const std::int64_t from = border(start_ms, end_ms, part, parts);
    const std::int64_t to = border(start_ms, end_ms, part + 1, parts);
    double sum = 0;
    for (;; ++at) {
      const bool last = at + 1 == samples.size();
      const std::int64_t until = last ? end_ms : samples[at + 1].at_ms;
      sum += value(samples[at]) * static_cast<double>(overlap_ms(samples[at].at_ms, until, from, to));
      if (last || until >= to) break;
    }
    const double middle = (static_cast<double>(from) + static_cast<double>(to)) / 2;
    curve.emplace_back(middle / kHourMs, sum / static_cast<double>(to - from));
  }
  return curve;
}

template Curve curve_over_time(const std::vector<FleetSample>&, std::int64_t,
                               const std::function<double(const FleetSample&)>&, int);
template Curve curve_over_time(const std::vector<FairnessSample>&, std::int64_t,
                               const std::function<double(const FairnessSample&)>&, int);

Curve curve_over_load(const std::vector<ArrivalSample>& samples, std::int64_t capacity_gpu_milli,
                      const std::function<std::int64_t(const ArrivalSample&)>& value) {
  struct Cell {
    Int128 sum = 0;
    std::int64_t count = 0;
  };
  std::map<std::int64_t, Cell> cells;
  if (capacity_gpu_milli <= 0) return {};
  for (const ArrivalSample& sample : samples) {
    Cell& cell = cells[rounded_percent(sample.arrived_gpu_milli, capacity_gpu_milli)];
    cell.sum += value(sample);
    ++cell.count;
  }
  Curve curve;
  for (const auto& [percent, cell] : cells) {
    const double mean = static_cast<double>(cell.sum) / static_cast<double>(cell.count);
    curve.emplace_back(static_cast<double>(percent), 100 * mean / static_cast<double>(capacity_gpu_milli));
  }
  return curve;
}

Curve distribution_curve(std::vector<double> values) {
  Curve curve;
  if (values.empty()) return curve;
  std::sort(values.begin(), values.end());
  for (int i = 0; i < kQuantiles; ++i) {
    const std::int64_t per_mille = i * 1000 / (kQuantiles - 1);
    curve.emplace_back(values[nearest_rank(values.size(), per_mille)], static_cast<double>(per_mille) / 10);
  }
  return curve;
}

namespace {

// Queue -> colour: the largest by GPU time have their own, the rest share the last.
struct QueueColours {
  std::vector<int> of_queue;
  std::vector<std::string> names;
};

QueueColours colour_queues(const RunResult& run) {
  std::vector<Int128> held(run.queues.size(), 0);
  for (const GanttBar& bar : run.gantt) held.at(bar.queue) += Int128{bar.gpu_milli} * (bar.end_ms - bar.start_ms);
  std::vector<std::size_t> by_size(run.queues.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) { return held[a] > held[b]; });
  QueueColours colours;
  colours.of_queue.assign(run.queues.size(), kGanttQueues - 1);
  const bool all_fit = run.queues.size() <= static_cast<std::size_t>(kGanttQueues);
  const std::size_t own = all_fit ? run.queues.size() : static_cast<std::size_t>(kGanttQueues - 1);
  for (std::size_t i = 0; i < own; ++i) {
    colours.of_queue[by_size[i]] = static_cast<int>(i);
    colours.names.push_back(run.queues[by_size[i]]);
  }
  if (!all_fit) colours.names.push_back("others (" + std::to_string(run.queues.size() - own) + ")");
  return colours;
}

class GanttCanvas {
 public:
  GanttCanvas(GanttImage& image, const RunResult& run) : image_(image) {
    held_.assign(static_cast<std::size_t>(image.rows) * static_cast<std::size_t>(image.columns), {});
    capacity_milli_.assign(static_cast<std::size_t>(image.rows), 0);
    for (std::size_t node = 0; node < image.nodes; ++node) capacity_milli_[row_of(node)] += run.node_gpu_milli[node];
  }

  void add(const GanttBar& bar, int colour) {
    const std::size_t row = row_of(bar.node);
    const std::int64_t span = image_.end_ms - image_.start_ms;
    const auto column_of = [&](std::int64_t ms) {
      return static_cast<int>(Int128{std::clamp<std::int64_t>(ms - image_.start_ms, 0, span - 1)} * image_.columns /
                              span);
    };
    for (int column = column_of(bar.start_ms); column <= column_of(bar.end_ms); ++column) {
      const std::int64_t ms = overlap_ms(bar.start_ms, bar.end_ms, column_start(column), column_start(column + 1));
      held_[index(row, column)][static_cast<std::size_t>(colour)] +=
          static_cast<double>(bar.gpu_milli) * static_cast<double>(ms);
    }
  }

  void paint() {
    for (int row = 0; row < image_.rows; ++row) {
      for (int column = 0; column < image_.columns; ++column) paint_cell(row, column);
    }
  }

 private:
  std::size_t row_of(std::size_t node) const { return node * static_cast<std::size_t>(image_.rows) / image_.nodes; }
  std::size_t index(std::size_t row, int column) const {
    return row * static_cast<std::size_t>(image_.columns) + static_cast<std::size_t>(column);
  }
  std::int64_t column_start(int column) const { return border(image_.start_ms, image_.end_ms, column, image_.columns); }

  void paint_cell(int row, int column) {
    const auto& held = held_[index(static_cast<std::size_t>(row), column)];
    const double total = std::accumulate(held.begin(), held.end(), 0.0);
    const double room = static_cast<double>(capacity_milli_[static_cast<std::size_t>(row)]) *
                        static_cast<double>(column_start(column + 1) - column_start(column));
    if (total <= 0 || room <= 0) return;
    const int queue = static_cast<int>(std::max_element(held.begin(), held.end()) - held.begin());
    const int level = std::clamp(static_cast<int>(total / room * kGanttLevels + 0.5), 1, kGanttLevels);
    if (!image_.cells.empty()) {
      GanttCell& left = image_.cells.back();
      const bool touches = left.row == row && left.column + left.columns == column;
      if (touches && left.queue == queue && left.level == level) {
        ++left.columns;
        return;
      }
    }
    image_.cells.push_back({row, column, 1, queue, level});
  }

  GanttImage& image_;
  std::vector<std::array<double, kGanttQueues>> held_;
  std::vector<std::int64_t> capacity_milli_;
};

}  // namespace

GanttImage gantt_image(const RunResult& run) {
  GanttImage image;
  image.nodes = run.node_gpu_milli.size();
  if (run.gantt.empty() || image.nodes == 0) return image;
  image.start_ms = run.gantt.front().start_ms;
  image.end_ms = image.start_ms + 1;
  for (const GanttBar& bar : run.gantt) {
    image.start_ms = std::min(image.start_ms, bar.start_ms);
    image.end_ms = std::max(image.end_ms, bar.end_ms);
  }
  if (!run.jobs.empty()) image.end_ms = std::clamp(drawn_end_ms(run), image.start_ms + 1, image.end_ms);
  image.rows = static_cast<int>(std::min<std::size_t>(kGanttRows, image.nodes));
  image.columns = static_cast<int>(std::min<std::int64_t>(kGanttColumns, image.end_ms - image.start_ms));
  const QueueColours colours = colour_queues(run);
  image.queues = colours.names;
  GanttCanvas canvas(image, run);
  for (const GanttBar& bar : run.gantt) canvas.add(bar, colours.of_queue[bar.queue]);
  canvas.paint();
  return image;
}

}  // namespace berth::sim

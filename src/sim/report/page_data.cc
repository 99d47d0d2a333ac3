#include "sim/report/page_data.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <utility>

#include "sim/report/curves.h"
#include "sim/report/downsample.h"
#include "sim/report/escape.h"

namespace berth::sim {
namespace {

namespace json = boost::json;

json::array points(const Curve& curve) {
  json::array array;
  for (const auto& [x, y] : curve) array.push_back(json::array{four_digits(x), four_digits(y)});
  return array;
}

json::object curves_object(const RunResult& run) {
  const RunCurves curves = curves_of(run, kCurvePoints, drawn_end_ms(run));
  return {{"allocation", points(curves.allocation)},
          {"fragmentation", points(curves.fragmentation)},
          {"wait", points(curves.wait_s)},
          {"jct", points(curves.jct_s)},
          {"utilization", points(curves.utilization)},
          {"fragmented", points(curves.fragmented)},
          {"queue_jobs", points(curves.queue_jobs)},
          {"queue_gpus", points(curves.queue_gpus)},
          {"gap", points(curves.share_gap)},
          {"jain", points(curves.jain)}};
}

json::object gantt_object(const RunResult& run) {
  const GanttImage image = gantt_image(run);
  json::array queues;
  for (const std::string& queue : image.queues) queues.emplace_back(visible_text(queue));
  // One flat list of numbers, five to a cell: an array of objects would be four times the size.
  json::array cells;
  for (const GanttCell& cell : image.cells) {
    for (const int number : {cell.row, cell.column, cell.columns, cell.queue, cell.level}) cells.emplace_back(number);
  }
  return {{"queues", std::move(queues)},
          {"rows", image.rows},
          {"columns", image.columns},
          {"nodes", image.nodes},
          {"start_h", static_cast<double>(image.start_ms) / 3'600'000},
          {"end_h", static_cast<double>(image.end_ms) / 3'600'000},
          {"cells", std::move(cells)}};
}

}  // namespace

std::string page_data(const std::vector<MeasuredRun>& runs) {
  json::array policies;
  for (const std::string& policy : policies_of(runs)) policies.emplace_back(visible_text(policy));
  std::map<std::string, std::size_t> drawn;
  json::array run_array;
  for (const MeasuredRun& run : runs) {
    const std::size_t earlier = drawn[run.result->policy]++;
    if (earlier >= kSeedsDrawn) continue;
    json::object object = {{"policy", visible_text(run.result->policy)},
                           {"seed", std::to_string(run.result->seed)},
                           {"curves", curves_object(*run.result)}};
    // A Gantt shows one run well and ten badly: the first seed of each policy.
    if (earlier == 0 && !run.result->gantt.empty()) object["gantt"] = gantt_object(*run.result);
    run_array.push_back(std::move(object));
  }
  return json::serialize(json::object{{"policies", std::move(policies)}, {"runs", std::move(run_array)}});
}

}  // namespace berth::sim

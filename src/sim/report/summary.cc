#include "sim/report/summary.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <utility>

#include "sim/report/bills.h"
#include "sim/report/curves.h"
#include "sim/report/escape.h"
#include "sim/trace/fields.h"

namespace berth::sim {
namespace {

namespace json = boost::json;

json::value number_or_null(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

// Counts are whole numbers where a program reads them.
json::value measure_value(const Metric& metric, const RunMeasures& measures) {
  const std::optional<double> value = metric.value(measures);
  if (metric.unit != MetricUnit::kCount || !value || *value != std::floor(*value)) return number_or_null(value);
  return static_cast<std::int64_t>(*value);
}

json::array texts(const std::vector<std::string>& lines) {
  json::array array;
  for (const std::string& line : lines) array.emplace_back(with_valid_utf8(line));
  return array;
}

// Pairs rather than an object: a text may be anything, and its order is kept.
json::array counted_texts(const std::map<std::string, std::int64_t>& counts, const char* key) {
  json::array array;
  for (const auto& [text, count] : counts)
    array.push_back(json::object{{key, with_valid_utf8(text)}, {"count", count}});
  return array;
}

json::object bad_rows_object(const BadRows& bad) {
  json::array first;
  for (const BadRow& row : bad.first) {
    first.push_back(
        json::object{{"file", with_valid_utf8(row.file)}, {"line", row.line}, {"reason", with_valid_utf8(row.reason)}});
  }
  return {{"total", bad.total}, {"by_reason", counted_texts(bad.by_reason, "reason")}, {"first", std::move(first)}};
}

json::object distribution_object(const Distribution& d) {
  return {{"count", d.count}, {"mean", d.mean}, {"min", d.min}, {"p50", d.p50},
          {"p90", d.p90},     {"p99", d.p99},   {"max", d.max}};
}

json::object group_object(const GroupMeasures& group) {
  return {{"jobs", group.jobs},
          {"wait_s", distribution_object(group.wait_s)},
          {"wait_at_least_s", distribution_object(group.wait_at_least_s)},
          {"jct_s", distribution_object(group.jct_s)},
          {"slowdown", distribution_object(group.slowdown)}};
}

// Sizes in the order of size, everything else by name.
json::array groups_array(const std::map<std::string, GroupMeasures>& groups) {
  std::vector<std::string> names;
  for (const auto& [name, group] : groups) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return size_bucket_rank(a) < size_bucket_rank(b);
  });
  json::array array;
  for (const std::string& name : names) {
    json::object object = group_object(groups.at(name));
    object["name"] = with_valid_utf8(name);
    array.push_back(std::move(object));
  }
  return array;
}

// A list of [x, y].
json::array points(const Curve& curve, double (*x_of)(double)) {
  json::array array;
  for (const auto& [x, y] : curve) array.push_back(json::array{x_of(x), four_digits(y)});
  return array;
}

constexpr int kSummaryStretches = 100;

json::value over_time(const RunCurves& curves) {
  if (curves.utilization.empty()) return nullptr;
  const auto seconds = [](double hours) { return std::round(hours * 3600); };
  return json::object{{"utilization_pct", points(curves.utilization, seconds)},
                      {"fragmentation_pct", points(curves.fragmented, seconds)},
                      {"waiting_jobs", points(curves.queue_jobs, seconds)},
                      {"waiting_gpus", points(curves.queue_gpus, seconds)},
                      {"share_gap_pct", points(curves.share_gap, seconds)},
                      {"jain_index", points(curves.jain, seconds)}};
}

json::value over_load(const RunCurves& curves) {
  if (curves.allocation.empty()) return nullptr;
  const auto arrived_pct = [](double percent) { return percent; };
  return json::object{{"allocation_pct", points(curves.allocation, arrived_pct)},
                      {"fragmentation_pct", points(curves.fragmentation, arrived_pct)}};
}

json::object run_object(const MeasuredRun& run) {
  json::object object = {{"policy", with_valid_utf8(run.result->policy)}, {"seed", run.result->seed}};
  for (const Metric& metric : metrics()) object[metric.key] = measure_value(metric, run.measures);
  object["jobs"] = run.measures.jobs;
  object["refused_because"] = counted_texts(run.result->refused_because, "reason");
  object["capacity_gpus"] = static_cast<double>(run.result->capacity_gpu_milli) / 1000;
  object["computed_in_s"] = number_or_null(run.result->wall_s);
  object["by_size"] = groups_array(run.measures.by_size);
  object["by_queue"] = groups_array(run.measures.by_queue);
  object["by_class"] = groups_array(run.measures.by_class);
  if (!run.result->bills.empty()) object["bills"] = bills_array(*run.result);
  const RunCurves curves = curves_of(*run.result, kSummaryStretches, run.result->end_ms);
  object["over_time"] = over_time(curves);
  object["over_load"] = over_load(curves);
  return object;
}

json::object estimate_object(const Estimate& estimate) {
  json::value low = nullptr;
  json::value high = nullptr;
  if (estimate.half_width) {
    low = estimate.mean - *estimate.half_width;
    high = estimate.mean + *estimate.half_width;
  }
  return {{"count", estimate.count},
          {"mean", estimate.mean},
          {"standard_deviation", number_or_null(estimate.standard_deviation)},
          {"ci95_low", std::move(low)},
          {"ci95_high", std::move(high)}};
}

json::object policy_object(const std::vector<MeasuredRun>& runs, const std::string& policy) {
  json::object estimates;
  for (const Metric& metric : metrics()) {
    std::vector<double> values;
    for (const auto& [seed, value] : values_by_seed(runs, policy, metric)) values.push_back(value);
    if (!values.empty()) estimates[metric.key] = estimate_object(estimate(values));
  }
  return {{"policy", with_valid_utf8(policy)},
          {"seed_changes_nothing", seed_changes_nothing(runs, policy)},
          {"measures", std::move(estimates)}};
}

json::object comparison_object(const Comparison& comparison, bool by_chance) {
  json::object object = estimate_object(comparison.difference);
  object["policy"] = with_valid_utf8(comparison.policy);
  object["baseline"] = with_valid_utf8(comparison.baseline);
  object["measure"] = comparison.metric->key;
  object["differs"] = by_chance && comparison.difference.differs_from_zero();
  object["same_jobs"] = comparison.only_policy == 0 && comparison.only_baseline == 0;
  object["completed_only_by_policy"] = comparison.only_policy;
  object["completed_only_by_baseline"] = comparison.only_baseline;
  return object;
}

std::string seconds_cell(const std::optional<std::int64_t>& ms) {
  if (!ms) return {};
  const std::int64_t size = *ms < 0 ? -*ms : *ms;
  return (*ms < 0 ? "-" : "") + std::to_string(size / 1000) + "." + std::to_string(1000 + size % 1000).substr(1);
}

void append_asked(const RunResult& run, const JobOutcome& job, std::string& csv) {
  csv.append(csv_cell(run.policy)).append(",").append(std::to_string(run.seed)).append(",");
  csv.append(csv_cell(job.id)).append(",").append(csv_cell(job.queue)).append(",").append(csv_cell(job.user));
  csv.append(",").append(csv_cell(job.job_class)).append(",").append(std::to_string(job.priority));
  csv.append(",").append(std::to_string(job.workers)).append(",").append(seconds_cell(job.gpu_milli));
}

void append_job(const RunResult& run, const JobOutcome& job, std::string& csv) {
  append_asked(run, job, csv);
  const auto factor = slowdown(job);
  csv.append(",").append(seconds_cell(job.submit_ms)).append(",").append(seconds_cell(job.first_start_ms));
  csv.append(",").append(seconds_cell(job.finish_ms)).append(",").append(seconds_cell(job.useful_ms));
  csv.append(",").append(seconds_cell(waiting_ms(job))).append(",").append(seconds_cell(completion_ms(job)));
  csv.append(",").append(factor ? std::to_string(*factor) : "").append(",").append(std::to_string(job.preemptions));
  csv.append(",").append(std::to_string(job.restarts)).append(",").append(std::to_string(job.moves));
  csv.append(",").append(seconds_cell(job.lost_gpu_milli_ms / 1000)).append(",").append(name_of(job.job_end));
  csv.append("\r\n");
}

// An order of arrival has no times: those cells stay empty, and a job that started never leaves.
void append_arrived(const RunResult& run, const ArrivedJob& arrived, std::string& csv) {
  const JobOutcome& job = (*run.asked)[arrived.job];
  append_asked(run, job, csv);
  csv.append(",,,,,,,,,,,,").append(name_of(arrived.started ? JobEnd::kRunning : JobEnd::kRefused)).append("\r\n");
}

}  // namespace

json::object input_object(const ReportInput& input) {
  return {{"jobs", input.jobs},
          {"nodes", input.nodes ? json::value(*input.nodes) : json::value(nullptr)},
          {"gpus", static_cast<double>(input.gpu_milli) / 1000},
          {"sources", texts(input.sources)},
          {"defaults_taken", counted_texts(input.defaults_taken, "text")},
          {"rows_left_out", counted_texts(input.rows_left_out, "rule")},
          {"overlay_taken", counted_texts(input.overlay_taken, "text")},
          {"notes", texts(input.notes)},
          {"bad_rows", bad_rows_object(input.bad_rows)}};
}

namespace {

// Counts what one completed and the other did not, for the runs of two policies on the same seeds. All runs of an
// experiment have the same jobs in the same order.
void count_unlike_jobs(const std::vector<MeasuredRun>& runs, Comparison& comparison) {
  for (const MeasuredRun& run : runs) {
    if (run.result->policy != comparison.policy) continue;
    const auto base = std::find_if(runs.begin(), runs.end(), [&](const MeasuredRun& other) {
      return other.result->policy == comparison.baseline && other.result->seed == run.result->seed;
    });
    if (base == runs.end()) continue;
    const auto& mine = run.result->jobs;
    const auto& theirs = base->result->jobs;
    for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
      const bool here = mine[i].job_end == JobEnd::kCompleted;
      const bool there = theirs[i].job_end == JobEnd::kCompleted;
      if (here && !there) ++comparison.only_policy;
      if (there && !here) ++comparison.only_baseline;
    }
  }
}

}  // namespace

std::vector<Comparison> compare_policies(const std::vector<MeasuredRun>& runs) {
  std::vector<Comparison> comparisons;
  const std::vector<std::string> policies = policies_of(runs);
  for (std::size_t i = 1; i < policies.size(); ++i) {
    Comparison pair{policies[i], policies.front(), nullptr, {}};
    count_unlike_jobs(runs, pair);
    for (const Metric& metric : metrics()) {
      const Estimate difference =
          paired_difference(values_by_seed(runs, policies[i], metric), values_by_seed(runs, policies.front(), metric));
      pair.metric = &metric;
      pair.difference = difference;
      if (difference.count > 0) comparisons.push_back(pair);
    }
  }
  return comparisons;
}

std::string summary_json(const ReportInput& input, const std::vector<MeasuredRun>& runs) {
  json::array run_array;
  for (const MeasuredRun& run : runs) run_array.push_back(run_object(run));
  json::array policy_array;
  for (const std::string& policy : policies_of(runs)) policy_array.push_back(policy_object(runs, policy));
  json::array comparison_array;
  for (const Comparison& comparison : compare_policies(runs)) {
    // Runs that no seed changes are one run: their interval is no evidence.
    const bool by_chance =
        !seed_changes_nothing(runs, comparison.policy) || !seed_changes_nothing(runs, comparison.baseline);
    comparison_array.push_back(comparison_object(comparison, by_chance));
  }
  const json::object summary = {{"schema", kSummarySchema},
                                {"title", with_valid_utf8(input.title)},
                                {"command", with_valid_utf8(input.command)},
                                {"version", with_valid_utf8(input.version)},
                                {"synthetic", input.synthetic},
                                {"input", input_object(input)},
                                {"runs", std::move(run_array)},
                                {"policies", std::move(policy_array)},
                                {"comparisons", std::move(comparison_array)}};
  return json::serialize(summary);
}

std::string jobs_csv(const std::vector<MeasuredRun>& runs) {
  std::string csv =
      "policy,seed,job_id,queue,user,job_class,priority,workers,gpus,submit_s,first_start_s,finish_s,useful_s,wait_s,"
      "jct_s,slowdown,preemptions,restarts,moves,lost_gpu_s,ending\r\n";
  for (const MeasuredRun& run : runs) {
    for (const JobOutcome& job : run.result->jobs) append_job(*run.result, job, csv);
    for (const ArrivedJob& arrived : run.result->arrived) append_arrived(*run.result, arrived, csv);
  }
  return csv;
}

}  // namespace berth::sim

#include "sim/trace/shape.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "sim/trace/fields.h"
#include "sim/trace/row_sink.h"

namespace berth::sim {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kMostNodes = 1'000'000;

std::string in_days(std::int64_t ms) {
  const std::int64_t thousandths = ms / (kDayMs / 1000);
  std::string text = std::to_string(thousandths / 1000);
  if (thousandths % 1000 != 0) text += "." + std::to_string(1000 + thousandths % 1000).substr(1);
  return text;
}

// The fewest equal workers that fit a node: the least divisor of `total` that is at least total / gpus_per_node.
std::int64_t fewest_equal_workers(std::int64_t total, std::int64_t gpus_per_node) {
  std::int64_t workers = (total + gpus_per_node - 1) / gpus_per_node;
  while (total % workers != 0) ++workers;
  return workers;
}

void split_job(TraceJob& job, std::int64_t workers) {
  job.workers = workers;
  job.gpus_per_worker /= workers;
  job.cpu_milli = (job.cpu_milli + workers - 1) / workers;
  job.mem_mib = (job.mem_mib + workers - 1) / workers;
}

// "56x8xV100"
Result<void> add_node_group(std::string_view text, Trace& trace) {
  const Error wrong = invalid("\"" + std::string(text) + "\" is not NODESxGPUSxMODEL, such as 56x8xV100");
  const std::size_t first = text.find('x');
  const std::size_t second = first == std::string_view::npos ? first : text.find('x', first + 1);
  if (second == std::string_view::npos) return wrong;
  const auto count = parse_whole(text.substr(0, first));
  const auto gpus = parse_whole(text.substr(first + 1, second - first - 1));
  const std::string_view model = text.substr(second + 1);
  if (!count || !gpus || *count < 1 || *gpus < 1 || *gpus > kMaxGpus) return wrong;
  if (model.empty() || !is_sound_name(model)) return wrong;
  if (*count > kMostNodes - static_cast<std::int64_t>(trace.nodes.size())) {
    return invalid("\"" + std::string(text) + "\" is more than " + std::to_string(kMostNodes) + " nodes in all");
  }
  for (std::int64_t i = 0; i < *count; ++i) {
    std::string number = std::to_string(trace.nodes.size());
    if (number.size() < 5) number.insert(0, 5 - number.size(), '0');
    trace.nodes.push_back(
        {"node-" + number, std::string(model), *gpus, kUnstatedNodeCpuMilli, kUnstatedNodeMemMib, {}});
  }
  trace.defaults_taken["CPU of a node not stated: it does not constrain"] += *count;
  trace.defaults_taken["memory of a node not stated: it does not constrain"] += *count;
  return {};
}

}  // namespace

Result<DayWindow> parse_day_window(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto from = parse_thousandths(text.substr(0, dash));
  const auto to = dash == std::string_view::npos ? std::nullopt : parse_thousandths(text.substr(dash + 1));
  constexpr std::int64_t kMaxDaysMilli = std::int64_t{366'000} * 1000;
  if (!from || !to || *from >= *to || *to > kMaxDaysMilli) {
    return invalid("\"" + std::string(text) + "\" is not a window of days, such as 22-58");
  }
  return DayWindow{*from * (kDayMs / 1000), *to * (kDayMs / 1000)};
}

void cut_window(Trace& trace, DayWindow window) {
  const auto outside = [&](const TraceJob& job) {
    return !job.submit_ms || *job.submit_ms < window.from_ms || *job.submit_ms >= window.to_ms;
  };
  const std::string days = in_days(window.from_ms) + "-" + in_days(window.to_ms);
  leave_out_jobs(trace, "jobs submitted outside of days " + days, outside);
  for (TraceJob& job : trace.jobs) *job.submit_ms -= window.from_ms;
  if (trace.start) trace.start->ms += window.from_ms;
  trace.notes.push_back("days " + days + " of the trace; the cluster is empty at the beginning of the window");
}

void start_at_first_submission(Trace& trace) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TraceJob& job : trace.jobs) first = std::min(first, job.submit_ms.value_or(first));
  if (first == 0 || first == std::numeric_limits<std::int64_t>::max()) return;
  for (TraceJob& job : trace.jobs) {
    if (job.submit_ms) *job.submit_ms -= first;
  }
  if (trace.start) trace.start->ms += first;
  trace.notes.push_back("time 0 is the first submission, " + std::to_string(first / 1000) + " s after the trace's own");
}

Result<std::int64_t> parse_load_milli(std::string_view text) {
  const auto milli = parse_thousandths(text);
  if (!milli || *milli < 1 || *milli > 1'000'000) {
    return invalid("\"" + std::string(text) + "\" is not a load factor between 0.001 and 1000");
  }
  return *milli;
}

void scale_load(Trace& trace, std::int64_t load_milli) {
  BERTH_CHECK(load_milli > 0);
  if (load_milli == 1000) return;
  for (TraceJob& job : trace.jobs) {
    if (job.submit_ms) *job.submit_ms = checked_multiply(*job.submit_ms, 1000) / load_milli;
  }
  trace.notes.push_back("submission times divided by " + std::to_string(load_milli) + "/1000; durations unchanged");
}

void split_workers(Trace& trace, std::int64_t gpus_per_node) {
  BERTH_CHECK(gpus_per_node > 0);
  const std::string node = std::to_string(gpus_per_node);
  const std::string silent = " whose number of workers is not stated: ";
  const std::string small = "jobs of up to " + node + " GPUs" + silent + "one worker";
  const std::string whole = "jobs of a multiple of " + node + " GPUs" + silent + "each worker a full node";
  const std::string odd =
      "jobs of over " + node + " GPUs and no multiple" + silent + "the fewest equal workers that fit";
  for (TraceJob& job : trace.jobs) {
    if (job.workers) continue;
    const std::int64_t total = job.gpus_per_worker;
    const bool fits = total <= gpus_per_node;
    ++trace.defaults_taken[fits ? small : total % gpus_per_node == 0 ? whole : odd];
    split_job(job, fits ? 1 : fewest_equal_workers(total, gpus_per_node));
  }
}

Result<void> add_fleet_shape(std::string_view text, Trace& trace) {
  for (;;) {
    const std::size_t comma = text.find(',');
    auto added = add_node_group(text.substr(0, comma), trace);
    if (!added) return added;
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

void keep_timed_jobs(Trace& trace) {
  leave_out_jobs(trace, "jobs without a submission time", [](const TraceJob& job) { return !job.submit_ms; });
  leave_out_jobs(trace, "jobs without a duration", [](const TraceJob& job) { return !job.duration_ms; });
}

void fill_tenants(Trace& trace, std::string_view tenant) {
  for (TraceJob& job : trace.jobs) {
    if (!job.tenant.empty()) continue;
    job.tenant = tenant;
    ++trace.defaults_taken["tenant of a job not stated: " + std::string(tenant)];
  }
}

}  // namespace berth::sim

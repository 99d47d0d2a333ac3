#include "sim/trace/row_sink.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/trace/dates.h"

namespace berth::sim {

void RowSink::add(TraceJob job, const std::vector<std::string_view>& defaults) {
  if (!names_.insert(job.id).second) return bad_row(job.line, "a job id that an earlier row has");
  for (const std::string_view text : defaults) assume(trace_, job, text);
  trace_.jobs.push_back(std::move(job));
}

void RowSink::add(TraceNode node, std::int64_t line, const std::vector<std::string_view>& defaults) {
  if (!options_.gpus_only && node.gpus > kMostGpusOfNode) {
    return bad_row(line, "more than " + std::to_string(kMostGpusOfNode) + " GPUs in a node");
  }
  // GPUs of a model that is not stated are a model of their own.
  if (!options_.gpus_only && node.gpus > 0 && !models_.contains(node.gpu_model) && models_.size() == kMaxGpuModels) {
    return bad_row(line, "a GPU model beyond the " + std::to_string(kMaxGpuModels) + " that a fleet may have");
  }
  if (!names_.insert(node.name).second) return bad_row(line, "a node name that an earlier row has");
  if (node.gpus > 0) models_.insert(node.gpu_model);
  for (const std::string_view text : defaults) ++trace_.defaults_taken[std::string(text)];
  trace_.nodes.push_back(std::move(node));
}

void RowSink::bad_row(std::int64_t line, const std::string& reason) {
  BadRows& bad = trace_.bad_rows;
  ++bad.total;
  ++bad.by_reason[reason];
  if (bad.first.size() < options_.bad_rows_kept) bad.first.push_back({file_, line, reason});
  if (options_.strict) refuse(invalid(file_ + ":" + std::to_string(line) + ": " + reason));
}

void RowSink::count_row() {
  if (++rows_ > options_.max_rows) {
    refuse({ErrorCode::kTooLarge, file_ + ": more than " + std::to_string(options_.max_rows) + " rows"});
  }
}

Result<void> RowSink::status() const {
  if (refusal_) return *refusal_;
  return {};
}

Result<std::int64_t> RowSink::date_ms(std::string_view text) {
  any_without_offset_ = any_without_offset_ || !states_offset(text);
  return sim::date_ms(text, options_.zone ? &*options_.zone : nullptr);
}

void RowSink::start_at_first_submission() {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TraceJob& job : trace_.jobs) first = std::min(first, job.submit_ms.value_or(first));
  if (first == std::numeric_limits<std::int64_t>::max()) return;
  for (TraceJob& job : trace_.jobs) {
    if (job.submit_ms) *job.submit_ms -= first;
  }
  trace_.start = Timestamp{first};
  std::string read_by = "dates state their offset from UTC";
  if (any_without_offset_) read_by = "dates carry no time zone and are read as UTC (--zone says another)";
  if (any_without_offset_ && options_.zone) read_by = "dates are read by the clocks of " + options_.zone->name;
  trace_.notes.push_back(read_by + "; time 0 is the first submission, " + to_iso8601(*trace_.start));
}

}  // namespace berth::sim

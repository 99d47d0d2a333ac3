#include "sim/trace/request_rules.h"

#include <algorithm>
#include <utility>

#include "sim/trace/fields.h"

namespace berth::sim {

std::vector<std::string> gpu_model_alternatives(Row& row, std::string_view column) {
  std::vector<std::string> models;
  const std::string text = row.name(column);
  if (text.empty()) return models;
  std::string_view rest = text;
  for (;;) {
    const std::size_t bar = rest.find('|');
    const std::string_view model = trimmed(rest.substr(0, bar));
    if (model.empty()) row.fault(column, "an empty alternative");
    if (std::find(models.begin(), models.end(), model) == models.end()) models.emplace_back(model);
    if (bar == std::string_view::npos) return models;
    rest.remove_prefix(bar + 1);
  }
}

std::int64_t gpu_share_milli(Row& row, std::string_view column, std::int64_t gpus) {
  const auto stated = row.whole(column, 1000);
  if (gpus == 0) {
    if (stated.value_or(0) != 0 && *stated != 1000) row.fault(column, "a share of no GPU");
    return 0;
  }
  if (!stated) {
    row.take_default("gpu_milli of a job not stated: 1000, whole GPUs");
    return 1000;
  }
  if (*stated == 0) row.fault(column, "0 of a GPU");
  if (*stated < 1000 && gpus > 1) row.fault(column, "a share of several GPUs");
  return *stated;
}

std::int64_t cpu_of_worker(Row& row, std::string_view column) {
  const auto stated = row.whole(column, kMaxCpuMilli);
  if (!stated) row.take_default("CPU of a job not stated: it asks for none");
  return stated.value_or(0);
}

std::int64_t memory_of_worker(Row& row, std::string_view column) {
  const auto stated = row.whole(column, kMaxMemMib);
  if (!stated) row.take_default("memory of a job not stated: it asks for none");
  return stated.value_or(0);
}

std::int64_t cpu_of_node(Row& row, std::string_view column) {
  const auto stated = row.whole(column, kMaxCpuMilli);
  if (!stated) row.take_default("CPU of a node not stated: it does not constrain");
  return stated.value_or(kUnstatedNodeCpuMilli);
}

std::int64_t memory_of_node(Row& row, std::string_view column) {
  const auto stated = row.whole(column, kMaxMemMib);
  if (!stated) row.take_default("memory of a node not stated: it does not constrain");
  return stated.value_or(kUnstatedNodeMemMib);
}

void take_any_model(Row& row, const TraceJob& job) {
  if (job.gpus_per_worker > 0 && job.gpu_models.empty())
    row.take_default("GPU model of a job not stated: any model will do");
}

void add_if_sound(Row& row, TraceJob job, RowSink& sink) {
  if (row.first_fault()) return;
  take_any_model(row, job);
  sink.add(std::move(job), row.defaults());
}

void add_if_sound(Row& row, TraceNode node, RowSink& sink) {
  if (row.first_fault()) return;
  sink.add(std::move(node), row.line(), row.defaults());
}

}  // namespace berth::sim

// Alibaba's 2023 GPU trace (cluster-trace-gpu-v2023). Pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli and, not in
// every list, gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time in seconds. A pod is one worker. It ran
// from scheduled_time to deletion_time; one that was never scheduled has no duration. Nodes:
// sn,cpu_milli,memory_mib,gpu,model.

#include "sim/trace/formats.h"
#include "sim/trace/request_rules.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

void read_pod(Row& row, RowSink& sink) {
  TraceJob job;
  job.line = row.line();
  job.id = row.need_name("name");
  job.workers = 1;
  job.gpus_per_worker = row.need_whole("num_gpu", kMaxGpus);
  job.gpu_milli = gpu_share_milli(row, "gpu_milli", job.gpus_per_worker);
  job.gpu_models = gpu_model_alternatives(row, "gpu_spec");
  job.cpu_milli = cpu_of_worker(row, "cpu_milli");
  job.mem_mib = memory_of_worker(row, "memory_mib");
  job.priority_class = row.name("qos");
  job.status = row.name("pod_phase");
  job.submit_ms = row.seconds_as_ms("creation_time");
  const auto scheduled_ms = row.seconds_as_ms("scheduled_time");
  const auto deleted_ms = row.seconds_as_ms("deletion_time");
  if (scheduled_ms && deleted_ms) {
    if (*deleted_ms < *scheduled_ms) row.fault("deletion_time", "before scheduled_time");
    job.duration_ms = *deleted_ms - *scheduled_ms;
  }
  add_if_sound(row, std::move(job), sink);
}

void read_openb_node(Row& row, RowSink& sink) {
  TraceNode node;
  node.name = row.need_name("sn");
  node.gpus = row.need_whole("gpu", kMaxGpus);
  node.gpu_model = row.name("model");
  node.cpu_milli = cpu_of_node(row, "cpu_milli");
  node.mem_mib = memory_of_node(row, "memory_mib");
  add_if_sound(row, std::move(node), sink);
}

}  // namespace

Result<void> read_openb_pods(std::string_view text, RowSink& sink) {
  return read_table(text, {.max_row_bytes = sink.options().max_row_bytes}, sink, read_pod);
}

Result<void> read_openb_nodes(std::string_view text, RowSink& sink) {
  return read_table(text, {.max_row_bytes = sink.options().max_row_bytes}, sink, read_openb_node);
}

}  // namespace berth::sim

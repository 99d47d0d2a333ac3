// The normalised columns: job_id,tenant,user,submit_s,duration_s,gpus_per_worker,gpu_milli,workers,gpu_model,
// cpu_milli_per_worker,mem_mib_per_worker,priority_class,job_class,status and
// node,gpu_model,gpus,cpu_milli,mem_mib,rack. Only job_id and gpus_per_worker (node and gpus) must be there; further
// columns are passed over. An empty cell means that the source does not say.

#include "sim/trace/formats.h"
#include "sim/trace/request_rules.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

void read_native_job(Row& row, RowSink& sink) {
  TraceJob job;
  job.line = row.line();
  job.id = row.need_name("job_id");
  job.tenant = row.name("tenant");
  job.user = row.name("user");
  job.submit_ms = row.seconds_as_ms("submit_s");
  job.duration_ms = row.seconds_as_ms("duration_s");
  job.gpus_per_worker = row.need_whole("gpus_per_worker", kMaxGpus);
  job.gpu_milli = gpu_share_milli(row, "gpu_milli", job.gpus_per_worker);
  job.workers = row.whole("workers", kMaxWorkers);
  if (job.workers && *job.workers == 0) row.fault("workers", "0");
  job.gpu_models = gpu_model_alternatives(row, "gpu_model");
  job.cpu_milli = cpu_of_worker(row, "cpu_milli_per_worker");
  job.mem_mib = memory_of_worker(row, "mem_mib_per_worker");
  job.priority_class = row.name("priority_class");
  job.job_class = row.name("job_class");
  job.status = row.name("status");
  add_if_sound(row, std::move(job), sink);
}

void read_native_node(Row& row, RowSink& sink) {
  TraceNode node;
  node.name = row.need_name("node");
  node.gpu_model = row.name("gpu_model");
  if (row.empty("gpus") && sink.options().gpus_of_silent_node) {
    node.gpus = *sink.options().gpus_of_silent_node;
    row.take_default("GPUs of a node not stated: the number given on the command line");
  } else {
    node.gpus = row.need_whole("gpus", kMaxGpus);
  }
  node.cpu_milli = cpu_of_node(row, "cpu_milli");
  node.mem_mib = memory_of_node(row, "mem_mib");
  node.rack = row.name("rack");
  add_if_sound(row, std::move(node), sink);
}

}  // namespace

Result<void> read_native_jobs(std::string_view text, RowSink& sink) {
  return read_table(text, {.max_row_bytes = sink.options().max_row_bytes}, sink, read_native_job);
}

Result<void> read_native_nodes(std::string_view text, RowSink& sink) {
  return read_table(text, {.max_row_bytes = sink.options().max_row_bytes}, sink, read_native_node);
}

}  // namespace berth::sim

// SenseTime Helios (HeliosData):
// job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration, queue. gpu_num and cpu_num
// are of the whole job, duration is in seconds, and the virtual cluster is the tenant.

#include "sim/trace/fields.h"
#include "sim/trace/formats.h"
#include "sim/trace/request_rules.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

void read_helios_job(Row& row, RowSink& sink) {
  TraceJob job;
  job.line = row.line();
  job.id = row.need_name("job_id");
  job.tenant = row.name("vc");
  job.user = row.name("user");
  job.status = row.name("state");
  if (const auto submitted = sink.date_ms(row.cell("submit_time"))) {
    job.submit_ms = *submitted;
  } else {
    row.fault("submit_time", submitted.error().message);
  }
  job.duration_ms = row.seconds_as_ms("duration");
  if (!job.duration_ms) row.fault("duration", "empty");
  const std::int64_t gpus = row.need_whole("gpu_num", kMaxGpus);
  const auto nodes = row.whole("node_num", kMaxWorkers);
  job.gpus_per_worker = gpus;
  if (nodes && *nodes > 0 && gpus % *nodes == 0) {
    job.workers = nodes;
    job.gpus_per_worker = gpus / *nodes;
  } else {
    row.take_default("GPUs do not divide by the number of nodes: split as if the number were not recorded");
  }
  job.gpu_milli = gpus == 0 ? 0 : 1000;
  const std::int64_t workers = job.workers.value_or(1);
  job.cpu_milli = (row.need_whole("cpu_num", kMaxCpuMilli / 1000) * 1000 + workers - 1) / workers;
  row.take_default("memory of a job not stated: it asks for none");
  add_if_sound(row, std::move(job), sink);
}

}  // namespace

Result<void> read_helios_jobs(std::string_view text, RowSink& sink) {
  auto read = read_table(text, {.max_row_bytes = sink.options().max_row_bytes}, sink, read_helios_job);
  if (read) sink.start_at_first_submission();
  return read;
}

}  // namespace berth::sim

#include "sim/report/run_result.h"

namespace berth::sim {

ReportInput describe_input(const Trace& trace) {
  ReportInput input;
  input.jobs = static_cast<std::int64_t>(trace.jobs.size());
  if (!trace.gpus_only) input.nodes = static_cast<std::int64_t>(trace.nodes.size());
  input.gpu_milli = fleet_gpu_milli(trace);
  input.sources = trace.sources;
  input.defaults_taken = trace.defaults_taken;
  input.rows_left_out = trace.rows_left_out;
  input.overlay_taken = trace.overlay_taken;
  input.notes = trace.notes;
  input.bad_rows = trace.bad_rows;
  return input;
}

}  // namespace berth::sim

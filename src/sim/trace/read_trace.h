#pragma once
// Reads jobs and nodes in their published formats, plain or gzip (detected by the first bytes). The format is detected
// by the header or the first character, unless `format` is given:
//
//   native  the columns job_id,tenant,user,submit_s,duration_s,gpus_per_worker,... and node,gpu_model,gpus,...
//   openb   Alibaba clusterdata 2023: pod list (name,cpu_milli,...,num_gpu,gpu_milli,...) and node list (sn,...)
//   philly  Microsoft Philly: cluster_job_log (JSON) and cluster_machine_list
//   helios  SenseTime Helios: cluster_log.csv
//   slurm   sacct --parsable2 (job steps are left out)
//
// A bad row is counted, reported with its line and skipped; with `strict` the first bad row refuses the file. A file
// without a necessary column, or beyond a limit, is always refused.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/off_peak.h"
#include "sim/trace/trace.h"

namespace berth::sim {

enum class TraceFormat { kNative, kOpenb, kPhilly, kHelios, kSlurm };

const char* name_of(TraceFormat format);
Result<TraceFormat> parse_trace_format(std::string_view text);

struct ReadOptions {
  std::optional<TraceFormat> format;                // absent: detect
  bool strict = false;                              // refuse the file at its first bad row
  std::optional<TimeZone> zone = {};                // of dates that state no offset; absent: UTC
  std::optional<std::int64_t> gpus_of_silent_node;  // GPUs of nodes that do not state them; absent: such a row is bad
  bool gpus_only = false;                         // only GPUs count: any node size and any number of models is accepted
  std::size_t max_bytes = std::size_t{2} << 30U;  // after unpacking
  std::size_t max_row_bytes = std::size_t{1} << 20U;
  std::int64_t max_rows = 20'000'000;
  std::size_t bad_rows_kept = 20;
};

// Reads jobs into `trace`. Requires: trace.jobs is empty, because the times of two files have different starts.
Result<void> read_jobs(const std::string& path, const ReadOptions& options, Trace& trace);
Result<void> read_nodes(const std::string& path, const ReadOptions& options, Trace& trace);

// As above, from memory (plain or gzip); messages call it `name`.
Result<void> read_jobs_text(const std::string& name, std::string_view bytes, const ReadOptions& options, Trace& trace);
Result<void> read_nodes_text(const std::string& name, std::string_view bytes, const ReadOptions& options, Trace& trace);

}  // namespace berth::sim

#pragma once
// Reads jobs and nodes as their owners publish them, plain or gzip (known by its first bytes, not by its name). The
// format is known by the header or the first character, unless `format` says otherwise:
//   native  the columns job_id,tenant,user,submit_s,duration_s,gpus_per_worker,... and node,gpu_model,gpus,...
//   openb   Alibaba clusterdata 2023: pod list (name,cpu_milli,...,num_gpu,gpu_milli,...) and node list (sn,...)
//   philly  Microsoft Philly: cluster_job_log (JSON) and cluster_machine_list
//   helios  SenseTime Helios: cluster_log.csv
//   slurm   sacct --parsable2 (job steps are left out)
// A bad row is counted, named by line and skipped; with `strict` the first one refuses the file. A file that lacks a
// column without which nothing can be said, or that breaks a limit, is refused whole.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/trace/trace.h"

namespace berth::sim {

enum class TraceFormat { kNative, kOpenb, kPhilly, kHelios, kSlurm };

const char* name_of(TraceFormat format);
Result<TraceFormat> parse_trace_format(std::string_view text);

struct ReadOptions {
  std::optional<TraceFormat> format;                // absent: detect
  bool strict = false;                              // refuse the file at its first bad row
  std::optional<std::int64_t> gpus_of_silent_node;  // for node rows that do not state their GPUs; absent: a bad row
  bool gpus_only = false;                         // only GPUs will be counted: any size of a node, any number of models
  std::size_t max_bytes = std::size_t{2} << 30U;  // after unpacking
  std::size_t max_row_bytes = std::size_t{1} << 20U;
  std::int64_t max_rows = 20'000'000;
  std::size_t bad_rows_kept = 20;
};

// Appends to trace.jobs, which must be empty: two files have two starts.
Result<void> read_jobs(const std::string& path, const ReadOptions& options, Trace& trace);
Result<void> read_nodes(const std::string& path, const ReadOptions& options, Trace& trace);

// The same from memory (plain or gzip); `name` stands for the path in messages.
Result<void> read_jobs_text(const std::string& name, std::string_view bytes, const ReadOptions& options, Trace& trace);
Result<void> read_nodes_text(const std::string& name, std::string_view bytes, const ReadOptions& options, Trace& trace);

}  // namespace berth::sim

#pragma once
// The jobs and machines of a trace, as plain values. A reader takes only what its source states. Otherwise it takes a
// default and counts it in `defaults_taken`, so that a report can print each assumption. Times are milliseconds since
// the start of the trace. Amounts of a job are per worker.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.h"

namespace berth::sim {

// How often a job saves its work and what that costs. Only an overlay can state it; no public trace does.
struct TraceCheckpoint {
  std::int64_t interval_ms = 0;  // between periodic saves; 0: saves only when asked to leave
  std::int64_t cost_ms = 0;      // from the signal to the acknowledged save
  std::int64_t restart_ms = 0;   // from a new start to useful work

  bool operator==(const TraceCheckpoint&) const = default;
};

struct TraceJob {
  std::string id;
  std::string tenant;  // empty: the source does not say
  std::string user;
  std::optional<std::int64_t> submit_ms;    // absent: the source has no time for it
  std::optional<std::int64_t> duration_ms;  // run time without queueing; absent: unknown or never ended
  std::int64_t gpus_per_worker = 0;         // the job's total while `workers` is absent
  std::int64_t gpu_milli = 1000;            // of each GPU; below 1000 only with one GPU
  std::optional<std::int64_t> workers;      // absent: the number of nodes is not recorded (see split_workers)
  std::vector<std::string> gpu_models;      // any of these is accepted; empty: any model
  std::int64_t cpu_milli = 0;
  std::int64_t mem_mib = 0;
  std::string priority_class;  // the source's own word
  std::string job_class;
  std::string status;
  std::string partition;                      // the source's own word for a pool (Slurm)
  std::optional<std::int64_t> time_limit_ms;  // where the user stated one
  std::optional<std::int64_t> priority;       // only from an overlay
  std::optional<TraceCheckpoint> checkpoint;  // only from an overlay
  std::int64_t line = 0;                      // its line in the file, from 1
  std::uint64_t defaults = 0;                 // defaults that it took: bits of Trace::job_defaults

  // GPUs that the whole job holds, in thousandths.
  std::int64_t total_gpu_milli() const { return gpus_per_worker * gpu_milli * workers.value_or(1); }
  bool operator==(const TraceJob&) const = default;
};

struct TraceNode {
  std::string name;
  std::string gpu_model;
  std::int64_t gpus = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t mem_mib = 0;
  std::string rack;
  bool operator==(const TraceNode&) const = default;
};

struct BadRow {
  std::string file;
  std::int64_t line = 0;
  std::string reason;
};

// Bad rows: all are counted; the first few are kept in full.
struct BadRows {
  std::int64_t total = 0;
  std::map<std::string, std::int64_t> by_reason;
  std::vector<BadRow> first;
};

struct Trace {
  std::vector<TraceJob> jobs;
  std::vector<TraceNode> nodes;
  std::optional<Timestamp> start;                      // the date of time 0, where the source gives dates
  std::vector<std::string> sources;                    // "FILE (FORMAT, N rows)"
  std::map<std::string, std::int64_t> defaults_taken;  // what was assumed, and for how many jobs and nodes
  std::vector<std::string> job_defaults;               // what the bits of TraceJob::defaults say, at most 64
  std::map<std::string, std::int64_t> rows_left_out;   // sound rows that a stated rule leaves out, such as job steps
  std::map<std::string, std::int64_t> overlay_taken;   // what an overlay supplied, and for how many jobs
  std::vector<std::string> notes;                      // what changed the input, such as a window or a scaled load
  BadRows bad_rows;
  bool gpus_only = false;  // only GPUs count; the nodes are one pool of them
};

// Counts a default, and notes that the job took it.
void assume(Trace& trace, TraceJob& job, std::string_view text);

// Removes the jobs for which `predicate` is true, and their counted defaults.
void leave_out_jobs(Trace& trace, const std::string& rule, const std::function<bool(const TraceJob&)>& predicate);

// GPUs of all nodes, in thousandths.
std::int64_t fleet_gpu_milli(const Trace& trace);

}  // namespace berth::sim

#pragma once
// An overlay is a file that adds what a trace lacks: tenants, priorities, checkpoint contracts and quotas. These never
// come from anywhere else. The YAML form has rules and queues; the CSV form has one row per job (job_id and any of the
// fields).
//
//   jobs:                                     # each matching rule is applied, in this order
//     - match: {job_class: training, min_gpus: 8}
//       set: {priority: 100, checkpoint: {interval_s: 600, cost_s: 30, restart_s: 60}}
//   queues:
//     - {name: 6214e9, parent: research, guaranteed_gpus: 64, max_gpus: 128, weight: 2}

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/trace.h"

namespace berth::sim {

struct OverlayMatch {
  std::optional<std::string> id, tenant, user, priority_class, job_class, status, partition;
  std::optional<std::int64_t> min_gpus, max_gpus;  // GPUs of the whole job
};

struct OverlaySet {
  std::optional<std::string> tenant, user, priority_class, job_class;
  std::optional<std::int64_t> priority, time_limit_ms;
  std::optional<TraceCheckpoint> checkpoint;
};

struct OverlayRule {
  OverlayMatch match;
  OverlaySet set;
};

struct OverlayQueue {
  std::string name;
  std::string parent;                                       // empty: the root
  std::optional<std::int64_t> guaranteed_milli, max_milli;  // thousandths of a GPU
  std::int64_t weight = 1;
};

struct Overlay {
  std::string file;
  std::vector<OverlayRule> rules;
  std::unordered_map<std::string, OverlaySet> by_job;
  std::vector<OverlayQueue> queues;
};

Result<Overlay> read_overlay(const std::string& path, const ReadOptions& options);
Result<Overlay> read_overlay_text(const std::string& name, std::string_view text, const ReadOptions& options);

// Checks the overlay against the whole trace, before a window is cut. Error: a rule matches no job, or a job id is
// unknown, because that is most likely a mistake.
Result<void> check_overlay(const Overlay& overlay, const Trace& trace);

// Sets the fields of the jobs, and counts in trace.overlay_taken how many fields came from the overlay.
void apply_overlay(const Overlay& overlay, Trace& trace);

// Checks the queues against the fleet and the jobs that will run, after fill_tenants. Error: a guarantee is larger than
// the fleet, or a queue has both jobs and child queues. Guarantees that are too large in sum, and queues without jobs,
// are noted in the trace; with `strict` they are errors, too.
Result<void> check_queues(const std::vector<OverlayQueue>& queues, bool strict, Trace& trace);

}  // namespace berth::sim

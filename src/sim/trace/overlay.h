#pragma once
// The only place from which a tenant, a priority, a checkpoint contract or a quota may come when a trace lacks it: a
// file that somebody wrote on purpose. YAML has rules and queues; CSV has one row per job (job_id and any of the
// fields).
//
//   jobs:                                     # every rule that matches is applied, in this order
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
  std::optional<std::int64_t> min_gpus, max_gpus;  // of the whole job
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

// Against the whole trace, before anything is cut from it. Refuses a rule that matches no job and an id that no job
// has: whoever wrote it meant something else.
Result<void> check_overlay(const Overlay& overlay, const Trace& trace);

// Sets the fields and counts in trace.overlay_taken what came from where.
void apply_overlay(const Overlay& overlay, Trace& trace);

// Against the fleet and the jobs as they will be run, tenants filled in. Refuses a guarantee that the whole fleet could
// not keep, and a queue with both jobs and queues below it; of guarantees that are too much together and of queues
// without jobs it notes that in the trace, or refuses them too with `strict`.
Result<void> check_queues(const std::vector<OverlayQueue>& queues, bool strict, Trace& trace);

}  // namespace berth::sim

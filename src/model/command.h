#pragma once
// Commands: what the outside asks or reports. `control::handle` validates one against the state and answers with
// events.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/cluster_config.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"

namespace berth {

struct ApplyConfig {
  ClusterConfig config;
  std::string user;
};
struct SubmitJob {
  JobSpec spec;
  std::string key;  // idempotency key; empty: none
};
struct CancelJob {
  JobId job;
  std::string user;
};
struct HoldJob {
  JobId job;
  bool held = true;
  std::string user;
};
struct PrioritizeJob {
  JobId job;
  std::int32_t priority = 0;
  std::string user;
};
// A running job goes elsewhere: it is asked to save and leave, and starts again at places that are kept for it.
struct MoveJob {
  JobId job;
  std::vector<std::string> off;  // names of nodes where it does not go; none: all that it is on
  bool lose_work = false;        // also if it does not save when it is asked to leave
  std::string user;
};
struct CordonNode {
  std::string node;
  bool cordoned = true;
  bool drain = false;  // with cordoned: also move what runs there
  std::string user;
  std::int64_t gone_in_s = 0;  // drains: the node goes away then, whatever runs there; 0: it stays
};
// Nothing runs on the nodes from `from` on for so long. They are named, or are all that have the labels and are of the
// pool.
struct PlanMaintenance {
  std::string name;  // empty: berth names it
  std::vector<std::string> nodes;
  Labels labels;
  std::string pool;
  Timestamp from;  // 0: now
  std::int64_t for_s = 0;
  std::string reason;
  std::string user;
};
struct CancelMaintenance {
  std::string name;
  std::string user;
};
// An operator or provider vouches that nothing runs on the node any more.
struct FenceNode {
  std::string node;
  std::string user;
};

// Reports of backends.
struct RegisterNode {
  NodeSpec spec;
};
struct ReportNodeStatus {
  std::string node;
  NodeStatus status = NodeStatus::kReady;
  std::string why;
};
struct ReportGpuHealth {
  std::string node;
  std::uint8_t gpu = 0;
  bool healthy = true;
  std::string why;
};
// All images that the node has now, sorted.
struct ReportNodeImages {
  std::string node;
  std::vector<std::string> images;
};
struct ReportTaskStarted {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  std::uint32_t incarnation = 1;
};
struct ReportTaskExited {
  TaskExited exit;
};
struct ReportCheckpoint {
  JobId job;
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
};

using Command = std::variant<ApplyConfig, SubmitJob, CancelJob, HoldJob, PrioritizeJob, CordonNode, FenceNode,
                             RegisterNode, ReportNodeStatus, ReportGpuHealth, ReportTaskStarted, ReportTaskExited,
                             ReportCheckpoint, PlanMaintenance, CancelMaintenance, MoveJob, ReportNodeImages>;

}  // namespace berth

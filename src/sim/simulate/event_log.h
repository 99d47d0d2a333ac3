#pragma once
// Reads berth's own event log as a trace: the jobs that ran, with the queues, nodes, guarantees and knobs they ran
// under. So another policy or quota can be tried on the same arrivals.

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/simulate/policy_spec.h"
#include "sim/trace/overlay.h"
#include "sim/trace/trace.h"

namespace berth::sim {

struct LoggedCluster {
  Trace trace;                       // finished jobs, and the nodes as last registered
  std::vector<OverlayQueue> queues;  // queues of the last configuration
  PolicySpec policy;                 // the product's cycle under the knobs of the last configuration, called `logged`
};

// Reads the log of a data directory without changing it, even while a server writes it. The run time of a job is that
// of its last attempt. Jobs that never ran or never ended are left out and counted.
Result<LoggedCluster> read_event_log(const std::string& directory);

}  // namespace berth::sim

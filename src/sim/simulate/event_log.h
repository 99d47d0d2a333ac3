#pragma once
// berth's own event log as a trace: the jobs that ran on a fleet, with the queues, nodes and guarantees they ran under,
// so that another policy or quota can be tried on the same arrivals.

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/trace/overlay.h"
#include "sim/trace/trace.h"

namespace berth::sim {

struct LoggedCluster {
  Trace trace;                       // jobs that came to an end, nodes as last registered
  std::vector<OverlayQueue> queues;  // of the configuration in force at the end
};

// Reads the log of a data directory without touching it, also while a server writes it. A job's run time is that of its
// last attempt; jobs that never ended or never ran are left out and counted.
Result<LoggedCluster> read_event_log(const std::string& directory);

}  // namespace berth::sim

#pragma once
// Trial configuration: a cluster.yaml as it would be applied, tried on a trace. Its scheduling section becomes a policy
// of the product's cycle, and its queues replace those of the trace. What a simulation does not know of it is noted.

#include <string>
#include <vector>

#include "base/result.h"
#include "model/cluster_config.h"
#include "sim/simulate/policy_spec.h"
#include "sim/trace/overlay.h"

namespace berth::sim {

struct TrialConfig {
  PolicySpec policy;  // called as the cluster is in the file
  std::vector<OverlayQueue> queues;
  std::vector<std::string> notes;  // what is set aside
};

// Reads the file by the rules of `berth apply`. Error: a mistake with its line, as `berth apply` says it.
Result<TrialConfig> read_trial_config(const std::string& path);

// Returns the product's cycle under these knobs as a policy.
PolicySpec product_policy(const std::string& name, const SchedulingConfig& scheduling);
// Returns what a simulation knows of a queue: its place in the tree, weight, guaranteed and max GPUs.
OverlayQueue overlay_queue_of(const QueueConfig& config);
// Returns true if the queue states more than that.
bool states_more_than_gpu_quota(const QueueConfig& queue);

}  // namespace berth::sim

#pragma once
// Volumes that keep no queues apart. All pods of jobs have one user and group, so what a volume holds belongs to every
// queue that may write to it.

#include <string>
#include <vector>

#include "kube/own_pod.h"
#include "model/cluster_config.h"

namespace berth::kube {

// Returns a sentence for each definition of a volume that queues of two or more trust domains may write to. A claim is
// another one in each namespace.
std::vector<std::string> warnings_of_shared_volumes(const ClusterConfig& config, const OwnPods& own);

}  // namespace berth::kube

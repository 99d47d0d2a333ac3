#pragma once
// ReplicaPlaces: how many replicas of each service that asks to be spread are on each node. Replicas count while they
// are bound (until their attempt ends) or nominated. Array elements that ask to be spread are counted in the same way.
// Placement uses it to spread replicas (sched/place/replica_spread.h). Jobs that do not ask for it are not counted and
// cost nothing.

#include <cstdint>
#include <map>

#include "model/ids.h"

namespace berth::state {

class ReplicaPlaces {
 public:
  using Nodes = std::map<NodeId, std::int32_t>;  // number of replicas by node; never 0

  void count(JobId service, NodeId node, int sign);
  // Removes all counts of the node. The caller counts its replicas again.
  void forget(NodeId node);
  const Nodes& of(JobId service) const;

  bool operator==(const ReplicaPlaces&) const = default;

 private:
  std::map<JobId, Nodes> places_;
};

}  // namespace berth::state

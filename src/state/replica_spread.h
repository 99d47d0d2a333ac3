#pragma once
// On which nodes the replicas of a service stand that asks to be spread: those that are bound, until their attempt is
// over, and those that are promised a place. What spreading goes by (sched/place/replica_spread.h). Jobs that do not
// ask for it are not in here and cost nothing.

#include <cstdint>
#include <map>

#include "model/ids.h"

namespace berth::state {

class ReplicaPlaces {
 public:
  using Nodes = std::map<NodeId, std::int32_t>;  // how many; none of them 0

  void count(JobId service, NodeId node, int sign);
  // What is there is about to be counted anew.
  void forget(NodeId node);
  const Nodes& of(JobId service) const;

  bool operator==(const ReplicaPlaces&) const = default;

 private:
  std::map<JobId, Nodes> places_;
};

}  // namespace berth::state

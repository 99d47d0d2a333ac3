#include "state/replica_spread.h"

#include "base/check.h"

namespace berth::state {

void ReplicaPlaces::count(JobId service, NodeId node, int sign) {
  Nodes& nodes = places_[service];
  std::int32_t& there = nodes[node];
  there += sign;
  BERTH_CHECK(there >= 0);
  if (there == 0) nodes.erase(node);
  if (nodes.empty()) places_.erase(service);
}

void ReplicaPlaces::forget(NodeId node) {
  for (auto service = places_.begin(); service != places_.end();) {
    service->second.erase(node);
    service = service->second.empty() ? places_.erase(service) : std::next(service);
  }
}

const ReplicaPlaces::Nodes& ReplicaPlaces::of(JobId service) const {
  static const Nodes kNone;
  const auto found = places_.find(service);
  return found == places_.end() ? kNone : found->second;
}

}  // namespace berth::state

#pragma once
// Where the other replicas of a service are, for a replica that asks to be spread. It goes to the node that has the
// fewest of them, and of equal nodes to the one in the outermost domain that has the fewest, then in the next one
// inwards. What is promised to replicas counts like what they hold. Only a wish: it never closes a node.

#include <cstdint>
#include <map>

#include "model/ids.h"
#include "sched/place/node_fit.h"
#include "state/state.h"

namespace berth::sched {

class OtherReplicas {
 public:
  OtherReplicas(const state::State& state, const state::JobState& job);

  // Whether any is there, so that all nodes are to be looked at.
  bool matter() const { return nodes_ != nullptr; }
  Crowd on(NodeId node) const;

 private:
  std::int32_t in(DomainId domain) const;

  const state::State& state_;
  const state::ReplicaPlaces::Nodes* nodes_ = nullptr;  // null: none
  std::map<DomainId, std::int32_t> domains_;
};

}  // namespace berth::sched

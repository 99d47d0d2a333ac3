#pragma once
// Replica spread: where the other replicas of a service are, for a replica that asks to be spread. It goes to the node
// with the fewest of them. Of equal nodes it takes the one in the outermost domain with the fewest, then in the next
// domain inwards. Where a level is required, the domain of that level with the fewest comes before all that. Nominated
// places of replicas count like used ones. Spreading is a preference: it never closes a node.

#include <cstdint>
#include <map>
#include <optional>

#include "model/ids.h"
#include "sched/place/node_fit.h"
#include "state/state.h"

namespace berth::sched {

class OtherReplicas {
 public:
  OtherReplicas(const state::State& state, const state::JobState& job);

  // Returns true if other replicas run or are nominated, so that all nodes have to be compared.
  bool matter() const { return nodes_ != nullptr; }
  Crowd on(NodeId node) const;

 private:
  std::int32_t in(DomainId domain) const;

  const state::State& state_;
  std::optional<std::size_t> required_;                 // level that is required of the replica
  const state::ReplicaPlaces::Nodes* nodes_ = nullptr;  // null: none
  std::map<DomainId, std::int32_t> domains_;
};

}  // namespace berth::sched

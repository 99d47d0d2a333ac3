#include "sched/place/replica_spread.h"

#include "state/replicas.h"

namespace berth::sched {

using state::JobState;
using state::State;

OtherReplicas::OtherReplicas(const State& state, const JobState& job) : state_(state) {
  if (!job.spreads_with_others() || state::service_of(state, job) == nullptr) return;
  const state::ReplicaPlaces::Nodes& nodes = state.replica_places().of(job.parent);
  if (nodes.empty()) return;
  nodes_ = &nodes;
  const TaskGroup& group = job.spec.groups.front();
  const bool own = job.spec.groups.size() == 1 && !group.topology.required.empty();  // never the wider one
  required_ = state.topology().level_named(own ? group.topology.required : job.spec.topology.required);
  for (const auto& [node, replicas] : nodes) {
    for (const DomainId domain : state.topology().of_node(node)) domains_[domain] += replicas;
  }
}

std::int32_t OtherReplicas::in(DomainId domain) const {
  const auto found = domains_.find(domain);
  return found == domains_.end() ? 0 : found->second;
}

// A node in no domain of a level has no other replicas at that level.
Crowd OtherReplicas::on(NodeId node) const {
  if (!matter()) return {};
  Crowd crowd(2 + state_.topology().levels().size());
  const auto there = nodes_->find(node);
  if (there != nodes_->end()) crowd[1] = there->second;
  for (const DomainId id : state_.topology().of_node(node)) {
    const std::size_t level = state_.topology().domain(id).level;
    crowd[2 + level] = in(id);
    if (level == required_) crowd[0] = in(id);
  }
  return crowd;
}

}  // namespace berth::sched

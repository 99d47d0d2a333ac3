#pragma once
// A gang while it is being placed: what it has taken so far on top of the state, task by task, and a way back. Every
// task goes to the node it fits best of those of a region: the tightest, or the one where it costs the fleet least.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/job.h"
#include "sched/place/affinity.h"
#include "sched/place/node_fit.h"
#include "sched/place/place.h"
#include "sched/place/replica_spread.h"
#include "state/state.h"

namespace berth::sched {

// Where tasks may go: anywhere, the nodes of one domain, or one node.
struct Region {
  DomainId domain;
  NodeId node;
  bool operator==(const Region&) const = default;
};

// So many tasks of each group.
using Counts = std::vector<std::int32_t>;

class Gang {
 public:
  Gang(const state::State& state, const state::JobState& job, ModelMask models, SearchStats& work,
       NodeScore score = NodeScore::kBestFit, Pools pools = Pools::kAny, Besides besides = Besides::kAll);

  const state::State& state() const { return state_; }
  const JobSpec& spec() const { return job_.spec; }
  const TaskRequirements& ask(std::size_t group) const { return asks_[group]; }
  std::span<const TaskRequirements> asks() const { return asks_; }
  const AffinityFilter& neighbours() const { return affinity_; }
  const OtherReplicas& other_replicas() const { return other_replicas_; }
  SearchStats& work() { return work_; }
  // As if the group had not stated a NUMA policy.
  void set_numa_aside(std::size_t group) { asks_[group].numa = NumaPolicy::kBestEffort; }
  // As if no maintenance were planned. Nodes that it has reached stay closed.
  void set_windows_aside() {
    for (TaskRequirements& ask : asks_) ask.stay.reset();
  }

  // Of nodes that it fits equally well those that have its images go first.
  void prefer_images();
  // Whole nodes that count more than that are none for it.
  void set_most(const Amounts& most) {
    for (TaskRequirements& ask : asks_) ask.most = most;
  }

  // Adds up to `count` tasks of the group and says how many it were.
  std::int32_t add(std::size_t group, std::int32_t count, const Region& region);
  // Adds all, or says false and leaves the gang as it was; `short_of` is then the first group that did not fit. Groups
  // go one after the other as they are stated, or, where they do not fit so, those with the largest tasks first or
  // last.
  bool add_all(const Counts& counts, const Region& region, std::size_t& short_of);

  const std::vector<TaskPlacement>& placements() const { return placements_; }
  std::size_t mark() const { return placements_.size(); }
  void rollback_to(std::size_t mark);
  Counts counts_since(std::size_t mark) const;

  // By group; within it by domain and node, so that neighbours in rank are neighbours in the fleet.
  std::vector<TaskPlacement> in_rank_order() &&;

 private:
  friend class GroupPlacing;
  const state::State& state_;
  const state::JobState& job_;
  SearchStats& work_;
  NodeScore score_;
  AffinityFilter affinity_;
  OtherReplicas other_replicas_;
  // Adds the groups in this order, or nothing and says which of them does not fit.
  std::optional<std::size_t> add_in(const std::vector<std::size_t>& order, const Counts& counts, const Region& region);
  // What the group's tasks cost the fleet where, or null where nodes are not scored.
  const state::PlacementLoss* loss_of(std::size_t group);

  std::vector<TaskRequirements> asks_;
  std::vector<std::optional<state::PlacementLoss>> losses_;  // by group, made when first asked for
  std::map<NodeId, NodeDelta> taken_;
  std::vector<TaskPlacement> placements_;
};

}  // namespace berth::sched

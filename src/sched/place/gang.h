#pragma once
// Gang: a gang while it is being placed. It records task by task what the gang takes on top of the state, and can be
// rolled back. Each task goes to the node of a region that fits it best: the one with the least left over or, if nodes
// are scored, the one where it costs the fleet least.

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

// Where tasks may go: the whole fleet, the nodes of one domain, or one node.
struct Region {
  DomainId domain;
  NodeId node;
  bool operator==(const Region&) const = default;
};

// A number of tasks for each group.
using Counts = std::vector<std::int32_t>;

// Where and how tasks of a gang may be placed.
struct GangTerms {
  ModelMask models = kAllModels;
  NodeScore score = NodeScore::kBestFit;
  Pools pools = Pools::kAny;
  Besides besides = Besides::kAll;
};

class Gang {
 public:
  Gang(const state::State& state, const state::JobState& job, const GangTerms& terms, SearchStats& work);

  const state::State& state() const { return state_; }
  const JobSpec& spec() const { return job_.spec; }
  const TaskRequirements& ask(std::size_t group) const { return asks_[group]; }
  std::span<const TaskRequirements> asks() const { return asks_; }
  const AffinityFilter& neighbours() const { return affinity_; }
  const OtherReplicas& other_replicas() const { return other_replicas_; }
  SearchStats& work() { return work_; }
  // Ignores the group's NUMA policy from now on. For explaining a refusal.
  void set_numa_aside(std::size_t group) { asks_[group].numa = NumaPolicy::kBestEffort; }
  // Ignores countables from now on. For explaining a refusal.
  void set_countables_aside() {
    for (TaskRequirements& ask : asks_) sched::set_countables_aside(ask);
  }
  // Ignores planned maintenance from now on. Nodes where maintenance has begun stay closed.
  void set_windows_aside() {
    for (TaskRequirements& ask : asks_) ask.stay.reset();
  }

  // Of nodes that fit a task equally well, takes one that has its image first.
  void prefer_images();
  // For an exclusive job: refuses nodes that count more than `most` in any dimension.
  void set_most(const Amounts& most) {
    for (TaskRequirements& ask : asks_) ask.most = most;
  }

  // Adds up to `count` tasks of the group. Returns how many were added.
  std::int32_t add(std::size_t group, std::int32_t count, const Region& region);
  // Adds all tasks and returns true, or returns false and leaves the gang unchanged; `short_of` is then the first group
  // that did not fit. Groups are placed in their stated order. If that fails, groups with the largest tasks are tried
  // first, and then last.
  bool add_all(const Counts& counts, const Region& region, std::size_t& short_of);

  const std::vector<TaskPlacement>& placements() const { return placements_; }
  std::size_t mark() const { return placements_.size(); }
  void rollback_to(std::size_t mark);
  Counts counts_since(std::size_t mark) const;

  // Returns the placements sorted by group, and within a group by domain and node. So tasks of neighbouring ranks run
  // on neighbouring nodes.
  std::vector<TaskPlacement> in_rank_order() &&;

 private:
  friend class GroupPlacing;
  const state::State& state_;
  const state::JobState& job_;
  SearchStats& work_;
  NodeScore score_;
  AffinityFilter affinity_;
  OtherReplicas other_replicas_;
  // Adds the groups in this order and returns nothing, or adds none and returns the group that does not fit.
  std::optional<std::size_t> add_in(const std::vector<std::size_t>& order, const Counts& counts, const Region& region);
  // Returns what tasks of the group cost the fleet on each node; null if nodes are not scored.
  const state::PlacementLoss* loss_of(std::size_t group);

  std::vector<TaskRequirements> asks_;
  std::vector<std::optional<state::PlacementLoss>> losses_;  // by group, made on first use
  std::map<NodeId, NodeDelta> taken_;
  std::vector<TaskPlacement> placements_;
};

}  // namespace berth::sched

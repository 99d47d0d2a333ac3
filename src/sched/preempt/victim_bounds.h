#pragma once
// VictimBounds: counts whether a preemptor could fit if given victims left, without a transaction. A transaction would
// give the exact answer, but it changes the indexes for every victim, and most searches find nothing. The count only
// looks at the nodes on which victims leave or stay.
//
// The count is never too low, because it ignores topology. So "does not fit" is certain, and "might fit" has to be
// tried in a transaction. The count also never rises when a job takes free resources and is then counted as a victim.
// Counted are only jobs of one task group that are not exclusive and that no rule keeps near or away from other jobs.
// For all other jobs the answer is always "might fit".

#include <array>
#include <cstdint>
#include <vector>

#include "sched/place/node_fit.h"
#include "sched/place/place.h"
#include "state/state.h"

namespace berth::sched {

class VictimBounds {
 public:
  VictimBounds(const state::State& state, const state::JobState& preemptor, SearchStats& work);
  // Returns true if the preemptor is a job that is counted.
  static bool counts(const state::State& state, const state::JobState& preemptor);

  // The victim's tasks from number `first` up to `end` leave (or stay after all).
  void leave(const state::JobState& victim, std::uint32_t first, std::uint32_t end) { move(victim, first, end, -1); }
  void stay(const state::JobState& victim, std::uint32_t first, std::uint32_t end) { move(victim, first, end, +1); }
  bool might_fit() const { return asks_.empty() || slots_ >= least_; }
  bool counts() const { return !asks_.empty(); }

 private:
  // A node on which a victim leaves or stays. It is read once, so later transactions do not change the count.
  struct Node {
    std::int32_t exclusive = 0;  // tasks of exclusive jobs: the preemptor has no place beside one
    // Free and not nominated; negative while nominated resources are still in use.
    std::vector<std::int64_t> countables;  // by place in NodeSpec::countables; empty if none limits the preemptor
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
    std::array<std::int16_t, kMaxGpusPerNode> gpu_milli{};
    std::array<std::int16_t, kMaxGpusPerNode> sharers{};  // tasks that stay and share the GPU
    std::array<MigSlices, kMaxGpusPerNode> slices{};      // slices of tasks that stay
    std::array<MigSlices, kMaxGpusPerNode> nominated_slices{};
    std::uint32_t closed = 0;   // bit g: the preemptor may not use GPU g while other tasks share it
    std::uint32_t refused = 0;  // bit g: the preemptor may never use GPU g
    std::int64_t slots = 0;
  };
  Node& at(NodeId id);
  void move(const state::JobState& victim, std::uint32_t first, std::uint32_t end, int sign);
  Node read(NodeId id) const;
  std::int64_t slots_on(NodeId id, const Node& node) const;

  const state::State& state_;
  std::vector<TaskRequirements> asks_;  // one; empty if nothing is counted
  std::int64_t least_ = 0;
  std::int64_t slots_ = 0;  // tasks that fit on the fleet; nodes that no victim leaves count only up to least_
  std::vector<std::int32_t> place_of_;  // by node: index into nodes_, or -1
  std::vector<Node> nodes_;             // nodes on which a victim has left or stayed
};

}  // namespace berth::sched

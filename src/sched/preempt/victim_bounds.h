#pragma once
// Vacated: whether a claimant could find its places if others left, counted on the side. A trial would tell, but it
// changes the indexes for every victim, and a search asks many times in vain; this costs a look at the nodes on which
// somebody leaves or stays.
//
// The count is never too low: it leaves out topology. So "no" is the truth, and "yes" has to be tried. And what
// somebody takes of what is free, and would give back, never makes it higher. Only jobs of one group that are not
// exclusive are counted, whatever they ask, and only where nothing keeps them near or away from others; for others the
// answer is always yes.

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

  // The tasks from `first` up to `end` of a running job.
  void leave(const state::JobState& victim, std::uint32_t first, std::uint32_t end) { move(victim, first, end, -1); }
  void stay(const state::JobState& victim, std::uint32_t first, std::uint32_t end) { move(victim, first, end, +1); }
  bool might_fit() const { return asks_.empty() || slots_ >= least_; }
  bool counts() const { return !asks_.empty(); }

 private:
  // A node on which somebody leaves or stays. It is read once, so that trials meanwhile do not count.
  struct Node {
    // Free and not promised; below zero where what is promised is still taken.
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
    std::array<std::int16_t, kMaxGpusPerNode> gpu_milli{};
    std::array<std::int16_t, kMaxGpusPerNode> sharers{};  // that stay
    std::array<MigSlices, kMaxGpusPerNode> slices{};      // of those who stay
    std::array<MigSlices, kMaxGpusPerNode> nominated_slices{};
    std::uint32_t closed = 0;   // bit g: while others share GPU g it is not for the claimant
    std::uint32_t refused = 0;  // bit g: it never is
    std::int64_t slots = 0;
  };
  Node& at(NodeId id);
  void move(const state::JobState& victim, std::uint32_t first, std::uint32_t end, int sign);
  Node read(NodeId id) const;
  std::int64_t slots_on(NodeId id, const Node& node) const;

  const state::State& state_;
  std::vector<TaskRequirements> asks_;  // one; none where nothing is counted
  std::int64_t least_ = 0;
  std::int64_t slots_ = 0;              // of the whole fleet, counted no further than the least by those nobody leaves
  std::vector<std::int32_t> place_of_;  // by node: in nodes_, or -1
  std::vector<Node> nodes_;             // those on which somebody has left
};

}  // namespace berth::sched

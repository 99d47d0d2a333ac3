#pragma once
// Exhaustive placement: for gangs with tasks of several sizes. When groups are placed one after the other, each on the
// nodes that fit it best, an existing solution can be missed. So on a small fleet all ways to spread the groups over
// the nodes are tried, depth first, more tasks of a group on a node before fewer. Groups with a strict NUMA policy come
// first, then groups with the largest tasks. Which GPUs of a node a task gets is chosen as elsewhere. Preferred levels
// are ignored.

#include <optional>
#include <vector>

#include "sched/place/gang.h"
#include "sched/place/topology.h"

namespace berth::sched {

inline constexpr std::size_t kFewNodes = 64;
inline constexpr std::int32_t kMostSteps = 1'000;  // each step puts tasks of one group on one node

// Adds all tasks within the required levels and returns the region in which each group may scale up. Otherwise it
// leaves the gang unchanged: the gang does not fit, has one group only, or the fleet has more than kFewNodes nodes; or
// the steps are used up. Groups times nodes may not exceed kMostSteps either, which bounds the depth.
std::optional<std::vector<Region>> place_exhaustively(Gang& gang, const Counts& counts, const JobLevels& levels);

}  // namespace berth::sched

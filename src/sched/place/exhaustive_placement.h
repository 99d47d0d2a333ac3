#pragma once
// Tasks of several sizes may stand in each other's way: one group after the other, each on the nodes that fit it best,
// can miss a place that is there. On a fleet of few nodes every way to spread the groups over the nodes is tried then,
// depth first, as many of a group on a node as fit before fewer; groups with a strict NUMA policy first, then those
// with the largest tasks. Which GPUs of a node a task gets stays as elsewhere, and preferred levels are not looked at.

#include <optional>
#include <vector>

#include "sched/place/gang.h"
#include "sched/place/topology.h"

namespace berth::sched {

inline constexpr std::size_t kFewNodes = 64;
inline constexpr std::int32_t kMostSteps = 1'000;  // each puts tasks of one group on one node

// Adds so many tasks of each group within the required levels and returns the region in which each group may grow, or
// leaves the gang as it was: it does not fit, the fleet is larger, the steps are used up, or there are more groups
// times nodes than steps, which bounds the depth, too.
std::optional<std::vector<Region>> place_exhaustively(Gang& gang, const Counts& counts, const JobLevels& levels);

}  // namespace berth::sched

#pragma once
// Topology: where in the tree of domains a gang goes.
//
// 1. `required`: every task within one domain of that level, or nothing is placed. `preferred`: within one domain of
//    that level if there is one that holds the gang.
// 2. The narrowest level wins: the levels are tried from the preferred one outwards, up to the required one or, where
//    none is required, the whole fleet. A gang that requires a level and prefers none prefers one node.
// 3. Of several domains of a level that hold it the one with the least room is taken, so that wide room stays whole.
// 4. What has to be wider than preferred is cut as little as possible: of each domain's children the tightest that
//    holds all the rest, else the one that holds most of it. For tasks of one size these are the fewest parts, level by
//    level.
//
// What the index says of a domain (state/topology_index.h) is an upper bound, because it knows nothing of CPU and
// memory; whether tasks fit is always tried.

#include <cstdint>
#include <optional>
#include <string>

#include "model/reason.h"
#include "sched/gang.h"
#include "state/state.h"

namespace berth::sched {

// Levels as numbers: kAnywhere is the fleet, then the configured ones, then the node.
struct LevelRange {
  std::int32_t required = -1;
  std::int32_t preferred = -1;
  bool known = true;  // the configuration has these levels
};
inline constexpr std::int32_t kAnywhere = -1;

LevelRange level_range(const state::State& state, const TopologyConstraint& topology);
std::int32_t node_level(const state::State& state);
// "rack", "node"; "" for kAnywhere.
std::string level_name(const state::State& state, std::int32_t level);

// Adds all the tasks within the range and returns the region of the required level that holds them, or leaves the gang
// as it was.
std::optional<Region> place_by_topology(Gang& gang, const Counts& counts, const LevelRange& range);

// Why a gang that fits the fleet fits no domain of the required level: the domain that comes closest. `asked` is what
// the gang asks at least in milli-GPUs, `limit` what is available to it there, `used` what of that comes in pieces of
// its tasks.
Reason closest_domain(Gang& gang, const LevelRange& range);

// Whether some domain of the required level, were it empty, holds what each group asks at least.
bool some_domain_could_hold(const Gang& gang, const LevelRange& range);

}  // namespace berth::sched

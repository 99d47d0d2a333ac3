#pragma once
// Topology: where in the tree of domains a gang goes.
//
// 1. `required`: every task within one domain of that level, or nothing is placed. `preferred`: within one domain of
//    that level if there is one that holds the gang.
// 2. The narrowest level wins: the levels are tried from the preferred one outwards, up to the required one or, where
//    none is required, the whole fleet. A gang that requires a level and prefers none prefers one node;
//    if it is to be spread, one domain of the narrowest level; if it wishes to be near others, or away from them, none.
// 3. Of several domains of a level that hold it the one with the least room is taken, so that wide room stays whole.
// 4. A group that has levels of its own goes, within the domain of the job, into one of its own by the same rules, the
//    largest such group first; if the others find no room then, it tries the next one, a bounded number of times.
// 5. What has to be wider than preferred is cut as little as possible: of each domain's children the tightest that
//    holds all the rest, else the one that holds most of it. For tasks of one size these are the fewest parts, level by
//    level.
//
// What the index says of a domain (state/topology_index.h) is an upper bound, because it knows nothing of CPU and
// memory; whether tasks fit is always tried.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/reason.h"
#include "sched/place/gang.h"
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

// The levels that a job asks for as a whole, and those that groups ask for within. What the only group of a job asks
// for is asked of the job; so is being together, where its terms of affinity ask for that (sched/place/affinity.h).
struct JobLevels {
  LevelRange job;
  std::vector<LevelRange> groups;  // by group; none where no group asks anything
  // All levels that are required of the job: a domain of the narrowest need not lie in one of the others.
  std::vector<std::int32_t> required;

  bool any() const { return job.preferred != -1 || !groups.empty(); }
  // Whether a narrower level is required of the group than of the job.
  bool narrower(std::size_t group) const { return !groups.empty() && groups[group].required > job.required; }
  bool known() const;
};
JobLevels job_levels(const Gang& gang);
std::int32_t node_level(const state::State& state);
// "rack", "node"; "" for kAnywhere.
std::string level_name(const state::State& state, std::int32_t level);

// Adds all the tasks within the levels and returns the region in which each group may grow: the domain of the level
// that is required of it. Or leaves the gang as it was.
std::optional<std::vector<Region>> place_by_topology(Gang& gang, const Counts& counts, const JobLevels& levels);

// The domain of the level that the node lies in, if it lies in one.
std::optional<Region> region_around(const state::State& state, NodeId node, std::int32_t level);

// Where a job and its groups are at home while their tasks get places one by one: in the domains, of the levels that
// are required of them, that their first tasks lie in.
class TopologyScope {
 public:
  TopologyScope(const state::State& state, const JobLevels& levels)
      : state_(&state), levels_(&levels), groups_(levels.groups.size()) {}

  // Whether a task of the group may stand on the node beside those that were let in before; it is then one of them.
  bool let_in(std::size_t group, NodeId node);
  // Where the group may grow, once it has a task.
  Region around(std::size_t group) const;

 private:
  const state::State* state_;
  const JobLevels* levels_;
  std::optional<Region> job_;
  std::vector<std::optional<Region>> groups_;  // none where no group asks anything
};

// Why `least` tasks of each group, which fit the fleet, fit no domain of the required level: the domain that comes
// closest, of those that lie in one of each of the `levels`. `asked` is what they ask in milli-GPUs, `limit` what is
// available to them there, `used` what of that comes in pieces of the tasks.
Reason closest_domain(Gang& gang, const Counts& least, const LevelRange& range,
                      const std::vector<std::int32_t>& levels);

// Whether some domain of the required level, were it empty, holds so many tasks of each group on nodes that lie in a
// domain of each of the `levels`.
bool some_domain_could_hold(const Gang& gang, const Counts& least, const LevelRange& range,
                            const std::vector<std::int32_t>& levels);

// Whether these places lie within the levels that are required, as a whole and of each group.
bool in_required_domains(const state::State& state, std::span<const TaskPlacement> placements, const JobLevels& levels);

// Whether the node lies in a domain of each of them.
bool is_in_all(const state::State& state, NodeId node, const std::vector<std::int32_t>& levels);

}  // namespace berth::sched

#pragma once
// Topology: where in the tree of domains a gang goes.
//
// 1. `required`: all tasks are within one domain of that level, or nothing is placed. `preferred`: all tasks are within
//    one domain of that level if one can hold the gang.
// 2. The narrowest level wins. Levels are tried from the preferred one outwards, up to the required one or, if none is
//    required, the whole fleet. A gang that requires a level and states no preference prefers one node. If it is to be
//    spread, it prefers one domain of the narrowest level. If it has preferred affinity terms, it prefers no narrower
//    level than the required one.
// 3. Of several domains of a level that can hold the gang, the one with the least room is taken. So large free regions
//    stay whole.
// 4. A group may have levels of its own. It goes into one of its own domains, within the domain of the job, by the same
//    rules, the largest such group first. If the other groups then find no room, its next domain is tried, a bounded
//    number of times.
// 5. A gang wider than its preferred level is split as little as possible. Of each domain's children the tightest that
//    holds all the rest is taken, else the one that holds most of it. For tasks of one size this gives the fewest
//    parts, level by level.
//
// What the index says of a domain (state/topology_index.h) is an upper bound, because it does not count CPU and memory.
// Whether tasks fit is always tried.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/reason.h"
#include "sched/place/gang.h"
#include "state/state.h"

namespace berth::sched {

// Levels as numbers: kAnywhere is the fleet, then come the configured levels, and last the node.
struct LevelRange {
  std::int32_t required = -1;
  std::int32_t preferred = -1;
  bool known = true;  // all named levels are configured
};
inline constexpr std::int32_t kAnywhere = -1;

LevelRange level_range(const state::State& state, const TopologyConstraint& topology);

// The levels that constrain the job as a whole, and those of its groups within. The levels of an only group count as
// the job's. So does the level of a required affinity term that the job itself matches, if it must be together there
// (sched/place/affinity.h).
struct JobLevels {
  LevelRange job;
  std::vector<LevelRange> groups;  // by group; empty if no group states any
  // All levels that are required of the job. A domain of the narrowest need not be inside a domain of another, so each
  // is checked.
  std::vector<std::int32_t> required;

  bool any() const { return job.preferred != -1 || !groups.empty(); }
  // Returns true if the group requires a narrower level than the job.
  bool narrower(std::size_t group) const { return !groups.empty() && groups[group].required > job.required; }
  bool known() const;
};
JobLevels job_levels(const Gang& gang);
std::int32_t node_level(const state::State& state);
// Returns a level's name, such as "rack" or "node"; "" for kAnywhere.
std::string level_name(const state::State& state, std::int32_t level);

// Adds all tasks within the levels and returns the region in which each group may scale up: the domain of its required
// level. Otherwise returns nothing and leaves the gang unchanged.
std::optional<std::vector<Region>> place_by_topology(Gang& gang, const Counts& counts, const JobLevels& levels);

// Returns the domain of the level that contains the node; nothing if none does.
std::optional<Region> region_around(const state::State& state, NodeId node, std::int32_t level);

// TopologyScope: keeps a job and its groups within their required domains while tasks are placed one by one. The first
// task of the job, and of each group, fixes the domain.
class TopologyScope {
 public:
  TopologyScope(const state::State& state, const JobLevels& levels)
      : state_(&state), levels_(&levels), groups_(levels.groups.size()) {}

  // Returns true if a task of the group may be on the node beside the tasks let in before. It then counts as let in.
  bool let_in(std::size_t group, NodeId node);
  // The region in which the group may get more tasks. Before its first task that is the job's.
  Region around(std::size_t group) const;

 private:
  const state::State* state_;
  const JobLevels* levels_;
  std::optional<Region> job_;
  std::vector<std::optional<Region>> groups_;  // empty if no group states levels
};

// Returns why `least` tasks of each group fit no domain of the required level, though they fit the fleet. The reason
// names the domain that comes closest, among those inside a domain of each of the `levels`. Its `asked` is the request
// in milli-GPUs, `limit` what is available there, and `used` the part of that which the tasks can use.
Reason closest_domain(Gang& gang, const Counts& least, const LevelRange& range,
                      const std::vector<std::int32_t>& levels);

// Returns true if a domain of the required level, were it empty and whole, could hold `least` tasks of each group. Only
// nodes inside a domain of each of the `levels` count.
bool some_domain_could_hold(const Gang& gang, const Counts& least, const LevelRange& range,
                            const std::vector<std::int32_t>& levels);

// Returns true if the placements keep all levels that are required of the job and of each group.
bool in_required_domains(const state::State& state, std::span<const TaskPlacement> placements, const JobLevels& levels);

// Returns true if the node is inside a domain of each of the levels.
bool is_in_all(const state::State& state, NodeId node, const std::vector<std::int32_t>& levels);

}  // namespace berth::sched

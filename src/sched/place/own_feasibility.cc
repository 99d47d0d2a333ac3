#include "sched/place/own_feasibility.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sched/place/affinity.h"
#include "sched/place/node_fit.h"
#include "sched/place/place.h"
#include "sched/place/topology.h"

namespace berth::sched {

namespace {

using state::JobState;
using state::NodeState;
using state::State;

// A rule that no two tasks of the job are in one domain of the level. `term` is null if the cause is that the job is
// exclusive or has ports.
struct Apart {
  std::int32_t level = kAnywhere;
  const AffinityTerm* term = nullptr;
  bool ports = false;
};

std::int32_t level_of(const State& state, const std::string& name) { return level_range(state, {name, {}}).required; }

std::vector<Apart> aparts_of(const State& state, const JobState& job) {
  std::vector<Apart> aparts;
  // For a job of one group this follows from what the empty fleet can hold.
  if (job.spec.exclusive && job.spec.groups.size() > 1) aparts.push_back({node_level(state), nullptr, false});
  for (const AffinityTerm& term : job.spec.anti_affinity) {
    if (term.required && state::matches(term, job.spec.labels))
      aparts.push_back({level_of(state, term.level), &term, false});
  }
  if (!job.spec.ports.empty()) aparts.push_back({node_level(state), nullptr, true});
  return aparts;
}

// Returns true if every job that matches `near` also matches `away`.
bool covers(const AffinityTerm& away, const AffinityTerm& near) {
  return std::all_of(away.labels.begin(), away.labels.end(), [&](const auto& label) {
    return std::find(near.labels.begin(), near.labels.end(), label) != near.labels.end();
  });
}

// Tasks of the job, given by their groups, that must be within one domain of the level.
struct Together {
  std::int32_t level = kAnywhere;
  std::vector<std::size_t> groups;
};

std::vector<Together> togethers_of(const State& state, const JobState& job, const Apart& apart) {
  Together all;
  all.level = level_range(state, job.spec.topology).required;
  for (const AffinityTerm& near : job.spec.affinity) {
    const std::int32_t level = level_of(state, near.level);
    const bool own = near.required && state::matches(near, job.spec.labels);
    if (own && apart.term != nullptr && covers(*apart.term, near) && level >= apart.level)
      all.level = std::max(all.level, level);
  }
  std::vector<Together> togethers;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    all.groups.push_back(g);
    const std::int32_t level = level_range(state, job.spec.groups[g].topology).required;
    if (level != kAnywhere) togethers.push_back({std::max(level, all.level), {g}});
  }
  togethers.push_back(std::move(all));
  return togethers;
}

// Returns true if some domain of the level has a place for each of these tasks.
bool has_enough(const State& state, const std::vector<TaskRequirements>& asks, const Apart& apart,
                const Together& together) {
  std::size_t wanted = 0;
  for (const std::size_t g : together.groups) wanted += static_cast<std::size_t>(asks[g].group.least());
  std::map<std::pair<DomainId, NodeId>, std::set<std::pair<DomainId, NodeId>>>
      places;  // places by the domain around them
  for (const NodeState& node : state.nodes()) {
    const auto around = region_around(state, node.id, together.level);
    const bool holds = std::any_of(together.groups.begin(), together.groups.end(),
                                   [&](std::size_t g) { return slots_when_whole(state, asks[g], node) > 0; });
    if (!around || !holds) continue;
    const auto place = region_around(state, node.id, apart.level);
    if (!place) return true;  // in no domain of the level, so tasks may share it
    auto& there = places[{around->domain, around->node}];
    there.emplace(place->domain, place->node);
    if (there.size() >= wanted) return true;
  }
  return wanted == 0;
}

Reason never(const State& state, const JobState& job, const Apart& apart, const Together& together) {
  Reason reason;
  reason.code = ReasonCode::kNeverFits;
  reason.group = static_cast<std::int32_t>(together.groups.front());
  if (apart.term == nullptr && !apart.ports) return reason;
  reason.rule = PlaceRule::kAlone;
  if (apart.ports) {
    reason.wish = "(all listen on " + ports_text(job.spec.ports) + ")";
  } else {
    for (const auto& [key, value] : apart.term->labels)
      reason.wish += (reason.wish.empty() ? "(" : ",") + key + "=" + value;
    reason.wish += " within one " + apart.term->level + ")";
  }
  if (together.level != kAnywhere) reason.wish += " and have to be within one " + level_name(state, together.level);
  return reason;
}

}  // namespace

std::optional<Reason> too_few_places(const State& state, const JobState& job) {
  const std::vector<Apart> aparts = aparts_of(state, job);
  if (aparts.empty()) return std::nullopt;
  std::vector<TaskRequirements> asks;
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) asks.push_back(task_requirements(state, job, g, kAllModels));
  for (const Apart& apart : aparts) {
    for (const Together& together : togethers_of(state, job, apart)) {
      if (!has_enough(state, asks, apart, together)) return never(state, job, apart, together);
    }
  }
  return std::nullopt;
}

}  // namespace berth::sched

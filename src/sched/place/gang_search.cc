#include "sched/place/gang_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "sched/place/exhaustive_placement.h"
#include "sched/place/topology.h"

namespace berth::sched {

using state::JobState;

Counts counts_of(const JobSpec& spec, bool full) {
  Counts counts;
  for (const TaskGroup& group : spec.groups) counts.push_back(full ? group.count : group.least());
  return counts;
}

namespace {

// Returns true if the GPUs that are available where the gang may run are fewer than its least counts ask for. Then no
// search finds places. What depends on single nodes, and MIG instances, are left to the search.
bool lacks_gpus(const Gang& gang) {
  const auto asks = gang.asks();
  const auto is_counted = [](const TaskRequirements& ask) { return !judged_by_node(ask) && !ask.mig; };
  if (!std::all_of(asks.begin(), asks.end(), is_counted)) return false;
  std::int64_t least = 0;
  for (const TaskRequirements& ask : asks) least += least_gpu_milli(ask);
  return least > 0 && least > available_gpu_milli(gang.state(), asks);
}

using Regions = std::vector<Region>;  // where each group may grow

// Where each group may grow, or the refusal.
struct GangPlaces {
  std::optional<Regions> regions;
  PlaceRefusal refusal;
};

// The least counts, wherever they fit.
GangPlaces place_anywhere(Gang& gang, const JobState& job) {
  const Counts least = counts_of(job.spec, false);
  std::size_t short_of = 0;
  const bool lacks = lacks_gpus(gang);
  // Of several groups the search tells which one is short.
  const bool searches = !lacks || least.size() > 1;
  if (searches && gang.add_all(least, {}, short_of)) return {Regions(least.size()), {}};
  if (!lacks) {
    if (auto regions = place_exhaustively(gang, least, {})) return {std::move(regions), {}};
  }
  if (planted(Bug::kGangPartial) && gang.add(short_of, least[short_of], {}) > 0) return {Regions(least.size()), {}};
  return {std::nullopt, {PlaceRefusal::Kind::kRoom, short_of}};
}

// All of it within the levels that the job asks for, else the least counts.
std::optional<Regions> place_within_levels(Gang& gang, const JobState& job, const JobLevels& levels) {
  if (!levels.known() || lacks_gpus(gang)) return std::nullopt;
  for (const bool full : {true, false}) {
    if (auto regions = place_by_topology(gang, counts_of(job.spec, full), levels)) return regions;
    if (counts_of(job.spec, true) == counts_of(job.spec, false)) break;
  }
  return place_exhaustively(gang, counts_of(job.spec, false), levels);
}

// A gang that asks for no level is kept together as far as can be all the same, node before NVLink domain before rack,
// unless it says where else it would rather be.
bool is_kept_together(const Gang& gang, const JobState& job) {
  return !gang.state().topology().levels().empty() && !job.spec.spread && !job.spec.has_terms() &&
         !gang.neighbours().matter() && !gang.other_replicas().matter();
}

bool is_on_one_node(const std::vector<TaskPlacement>& placements) {
  return std::all_of(placements.begin(), placements.end(),
                     [&](const TaskPlacement& one) { return one.node == placements.front().node; });
}

GangPlaces place_together(Gang& gang, const JobState& job) {
  GangPlaces found = place_anywhere(gang, job);
  if (!found.regions || !is_kept_together(gang, job) || is_on_one_node(gang.placements())) return found;
  gang.rollback_to(0);
  JobLevels levels;
  levels.job.preferred = node_level(gang.state());
  if (place_within_levels(gang, job, levels)) return found;  // which may grow anywhere
  return place_anywhere(gang, job);
}

}  // namespace

std::optional<PlaceRefusal> place_all(Gang& gang, const JobState& job) {
  const JobLevels levels = job_levels(gang);
  GangPlaces found = levels.any() ? GangPlaces{place_within_levels(gang, job, levels), {PlaceRefusal::Kind::kLevels}}
                                  : place_together(gang, job);
  if (!found.regions) return found.refusal;
  const Counts placed = gang.counts_since(0);
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    if (placed[g] >= job.spec.groups[g].least()) gang.add(g, job.spec.groups[g].count - placed[g], (*found.regions)[g]);
  }
  return std::nullopt;
}

}  // namespace berth::sched

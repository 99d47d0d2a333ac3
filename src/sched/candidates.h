#pragma once
// Whom a claimant might stop: those of its own queue that it may preempt, and what others have borrowed that it may
// reclaim, in the order in which they would go. Who of them has to go is found in sched/preempt.h.

#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place.h"
#include "sched/preempt.h"
#include "state/state.h"

namespace berth::sched {

// Stands behind all levels of attained service.
constexpr std::int32_t kBehindAllLevels = 1'000;

// All of a job, or the last tasks of an elastic gang. One that could lose either stands in the lists twice: with what
// it can give back, and later with the rest.
struct Victim {
  JobId job;
  StopCause cause = StopCause::kReclaim;
  std::uint32_t keep = 0;  // so many tasks stay
  std::uint32_t end = 0;   // what counts here are the tasks from `keep` up to this one
  std::int32_t priority = 0;
  bool needed = false;  // its service would have more replicas away than it allows
  Fraction loss_per_gpu;
  Seq order = 0;
  std::int64_t gpu_milli = 0;
  // Of a job in the claimant's queue, if that orders by attained service; the others stand behind all.
  std::int32_t level = kBehindAllLevels;
  std::uint64_t within = 0;   // of its least part, by depth
  Fraction side_share{0, 1};  // of growth: what its side of the tree has of the fleet

  bool whole() const { return keep == 0; }
};

// Those who may be stopped for a claimant, the first to go first: now, and when they have run their minimum.
struct Candidates {
  bool spares_growth = false;  // of a side that has less than the claimant's would have; that changes by starts alone
  std::vector<Victim> ripe;
  std::vector<Victim> young;
  Timestamp next_ripe = Timestamp::never();
  bool left_out = false;  // there are more than the budget
};

std::uint32_t tasks_of(const state::JobState& job);

// Whether the gang runs with more tasks than its least counts.
bool has_growth(const state::JobState& job);

// Without those who are spoken for. Who is reclaimed is gathered only if `reclaims`.
Candidates gather_candidates(const VictimSearch& search, const state::JobState& claimant, bool reclaims,
                             PlaceWork& work);

}  // namespace berth::sched

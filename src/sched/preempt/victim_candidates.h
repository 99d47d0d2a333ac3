#pragma once
// Whom a claimant might stop: those of its own queue that it may preempt, and what others have borrowed that it may
// reclaim, in the order in which they would go. Who of them has to go is found in sched/preempt/preempt.h.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/timestamp.h"
#include "model/plan.h"
#include "sched/place/place.h"
#include "sched/preempt/preempt.h"
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
struct VictimCandidates {
  bool spares_growth = false;  // of a side that has less than the claimant's would have; that changes by starts alone
  std::vector<Victim> evictable;
  std::vector<Victim> not_yet_evictable;
  Timestamp next_evictable = Timestamp::never();
  bool left_out = false;                     // there are more than may be stopped now
  bool over_queue_limits = false;            // because queues limit it
  Timestamp more_from = Timestamp::never();  // then: when more may be
  bool passed_over = false;                  // who has no GPUs, as the search asks
};

std::uint32_t tasks_of(const state::JobState& job);

// Whether the gang runs with more tasks than its least counts.
bool has_growth(const state::JobState& job);

// What was gathered in one state, by all of the claimant that it depends on. Only of those who can take nothing but
// what others have borrowed: they do not depend on its own queue, nor on what it asks beyond GPUs or none.
struct SharedVictimCandidates {
  struct Key {
    std::vector<QueueId> debtors;  // the branches that may have borrowed
    bool asks_gpus = false;
    bool frees_places = false;
    std::optional<std::uint64_t> within;  // of who has given way before, and spares those who are more so
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, VictimCandidates> by_preemptor;
};

// Without those who are spoken for. Who is reclaimed is gathered only if `reclaims`. They are in `own`, or among those
// that the search shares.
const VictimCandidates& gather_candidates(const VictimSearch& search, const state::JobState& preemptor, bool reclaims,
                                          std::optional<VictimCandidates>& own, SearchStats& work);

}  // namespace berth::sched

#pragma once
// Candidates: the running jobs that a preemptor might evict, in the order in which they would be evicted. They are jobs
// of its own queue that it may preempt, and what other queues have borrowed and it may reclaim. Which of them must be
// evicted is found in sched/preempt/preempt.h.

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

// Sorts behind all levels of attained service.
constexpr std::int32_t kBehindAllLevels = 1'000;

// A candidate: a whole job, or the last tasks of an elastic gang. A gang that could lose either is listed twice: first
// with its scaled-up tasks, later with the rest.
struct Victim {
  JobId job;
  StopCause cause = StopCause::kReclaim;
  std::uint32_t keep = 0;  // number of tasks that stay
  std::uint32_t end = 0;   // the candidate is the tasks from `keep` up to here
  std::int32_t priority = 0;
  bool needed = false;  // its service would have more replicas unavailable than it allows
  Fraction loss_per_gpu;
  Seq order = 0;
  std::int64_t gpu_milli = 0;
  // Level of attained service, if the job is in the preemptor's queue and that queue orders by it.
  std::int32_t level = kBehindAllLevels;
  std::uint64_t within = 0;   // guarantees that the tasks up to min_count are in, a bit for each depth
  Fraction side_share{0, 1};  // of scaled-up tasks: the fleet share of their side of the tree

  bool whole() const { return keep == 0; }
};

// The candidates for one preemptor. `evictable` can be evicted now; it is sorted, and its first is evicted first.
// `not_yet_evictable` are whole jobs that must run longer before they can be evicted for this preemptor (min_runtime,
// cooldown, level of attained service); it is not sorted.
struct VictimCandidates {
  bool spares_growth = false;  // scaled-up tasks are spared: their side has less than the preemptor's would have.
                               // Starts alone can change that
  std::vector<Victim> evictable;
  std::vector<Victim> not_yet_evictable;
  Timestamp next_evictable = Timestamp::never();
  bool left_out = false;                     // more candidates than may be evicted now
  bool over_queue_limits = false;            // because queues limit evictions
  Timestamp more_from = Timestamp::never();  // then: when more may be evicted
  bool passed_over = false;                  // candidates without GPUs were not looked at
};

// Returns the number of tasks of the running job.
std::uint32_t tasks_of(const state::JobState& job);

// Returns true if the running gang has more tasks than its min_count.
bool has_growth(const state::JobState& job);

// The candidates that preemptors of one kind share within a cycle.
struct SharedVictimCandidates {
  struct Key {
    std::vector<QueueId> debtors;  // branches of the tree that may have borrowed
    bool asks_gpus = false;
    bool frees_places = false;
    std::optional<std::uint64_t> within;  // set if it was evicted before: it spares jobs that rank higher
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, VictimCandidates> by_preemptor;
};

// Returns the candidates, without jobs that are already victims. Candidates of other queues are gathered only if
// `reclaims` is true. The result is stored in `own` or, if preemptors with the same key get the same candidates, in
// `search.only_whether`.
const VictimCandidates& gather_candidates(const VictimSearch& search, const state::JobState& preemptor, bool reclaims,
                                          std::optional<VictimCandidates>& own, SearchStats& work);

}  // namespace berth::sched

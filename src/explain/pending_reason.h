#pragma once
// Finds the reason why a pending job does not start at a moment. It calls the functions of the cycle in the order of
// the cycle: gate, head of a strict queue, quota, places, backfill reservations of other jobs. It never evicts a job.

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/place/place.h"
#include "sched/start.h"
#include "state/state.h"

namespace berth::explain {

// Returns the first constraint that refuses the job, or nothing if the job would start if it were tried now. `job` may
// be a changed copy of the job in the state. `state` is changed during the search and restored.
std::optional<Reason> pending_reason(state::State& state, const state::JobState& job, Timestamp now,
                                     sched::SearchStats& work);

// Returns the job that a strict queue tries before this one, or none().
JobId strict_head_before(const state::State& state, const state::JobState& job, Timestamp now);

// Finds reason codes for many jobs of a list at one moment. Jobs of one equivalence class share all reasons but
// reservations, so each class is tried only once, and at most `most_classes` are tried. A job that fits on places of a
// backfill reservation gets would-delay-reservation, even if it could start on other places. It returns codes without
// numbers, because the numbers differ from job to job.
class PendingReasons {
 public:
  static constexpr std::size_t kClassesOfList = 256;
  PendingReasons(const state::State& state, Timestamp now, std::size_t most_classes = kClassesOfList)
      : state_(state), now_(now), most_classes_(most_classes) {}
  // Returns the code, or nothing if no constraint refuses the job or the limit of work is used up.
  std::optional<ReasonCode> operator()(const state::JobState& job);

 private:
  static constexpr std::uint64_t kMostNodes = 20'000;

  const state::State& state_;
  const Timestamp now_;
  const std::size_t most_classes_;
  sched::SearchStats work_;
  std::map<std::pair<QueueId, std::uint64_t>, sched::StartAnswer> eq_classes_;  // beside no reservations
  std::map<QueueId, JobId> heads_;  // the first startable job of each strict queue
};

}  // namespace berth::explain

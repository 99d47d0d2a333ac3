#pragma once
// Blocking: what keeps a waiting job from starting at a moment, asked with the functions of the cycle in the cycle's
// order: gate, head of a strict queue, quota, place, the holds of others. Nobody is evicted for the answer.

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/place/place.h"
#include "state/state.h"

namespace berth::explain {

// The first constraint that refuses, or nothing: asked now, the job would start. `job` may be a changed copy of what
// the state holds. `state` is used as scratch paper.
std::optional<Reason> pending_reason(state::State& state, const state::JobState& job, Timestamp now,
                                     sched::SearchStats& work);

// The job that a strict queue asks before this one, or none().
JobId strict_head_before(const state::State& state, const state::JobState& job, Timestamp now);

// The same for the rows of a list, at one moment: what refuses one job of a lane refuses all of them (but for holds),
// so each lane is asked once, and only so many. Behind-hold is told of who fits where a start is held, though it may
// yet fit beside that. The codes alone, as the numbers are one job's.
class PendingReasons {
 public:
  static constexpr std::size_t kClassesOfList = 256;
  PendingReasons(const state::State& state, Timestamp now, std::size_t most_classes = kClassesOfList)
      : state_(state), now_(now), most_classes_(most_classes) {}
  // Nothing: nothing refuses it, or too many were asked before it.
  std::optional<ReasonCode> operator()(const state::JobState& job);

 private:
  static constexpr std::uint64_t kMostNodes = 20'000;

  const state::State& state_;
  const Timestamp now_;
  const std::size_t most_classes_;
  sched::SearchStats work_;
  // Places, or the code that refuses them.
  std::map<std::pair<QueueId, std::uint64_t>, std::pair<std::optional<std::vector<TaskPlacement>>, ReasonCode>>
      eq_classes_;
  std::map<QueueId, JobId> heads_;  // of strict queues
};

}  // namespace berth::explain

#pragma once
// How many more gangs of a queue may be stopped for others now, where its terms of eviction, or those of queues above
// it, limit their rate (docs/terms.md). The limits of all queues on the way to the root hold, beside the cluster's own.

#include <cstdint>
#include <map>

#include "base/timestamp.h"
#include "model/ids.h"
#include "state/state.h"

namespace berth::sched {

using StoppedBelow = std::map<QueueId, std::int64_t>;  // of queues with a limit

// One more gang of the queue is stopped.
void count_stopped(const state::State& state, QueueId queue, StoppedBelow& stopped);

class EvictionLimits {
 public:
  // `stopped`: by the cycle that asks, so far; or null.
  EvictionLimits(const state::State& state, Timestamp now, const StoppedBelow* stopped)
      : state_(state), now_(now), stopped_(stopped) {}

  // Whether one more gang of the queue may be stopped, which counts from then on. Otherwise the nearest queue that lets
  // nobody go any more is `refused_by`.
  bool take(QueueId queue);

  QueueId refused_by() const { return refused_by_; }
  // When one more may be stopped below a queue that has refused somebody; never() if none has.
  Timestamp next() const { return next_; }

 private:
  const state::State& state_;
  Timestamp now_;
  const StoppedBelow* stopped_;
  std::map<QueueId, std::int64_t> left_;
  QueueId refused_by_ = QueueId::none();
  Timestamp next_ = Timestamp::never();
};

}  // namespace berth::sched

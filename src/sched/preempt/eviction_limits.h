#pragma once
// EvictionLimits: how many more gangs of a queue may be evicted now, if its terms of eviction or those of an ancestor
// limit the rate (docs/terms.md). The limits of all queues on the quota path hold, beside the cluster's own limit.

#include <cstdint>
#include <map>

#include "base/timestamp.h"
#include "model/ids.h"
#include "state/state.h"

namespace berth::sched {

using StoppedBelow = std::map<QueueId, std::int64_t>;  // number of evicted gangs, for queues with a limit

// Counts one more evicted gang of the queue.
void count_stopped(const state::State& state, QueueId queue, StoppedBelow& stopped);

class EvictionLimits {
 public:
  // `stopped`: what this cycle has evicted so far; may be null.
  EvictionLimits(const state::State& state, Timestamp now, const StoppedBelow* stopped)
      : state_(state), now_(now), stopped_(stopped) {}

  // Returns true if one more gang of the queue may be evicted, and counts it. Otherwise `refused_by` becomes the
  // nearest queue whose limit is used up, unless a queue refused before.
  bool take(QueueId queue);

  QueueId refused_by() const { return refused_by_; }
  // When a queue that has refused will allow one more eviction; never() if none has refused.
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

#include "sched/preempt/eviction_limits.h"

#include <algorithm>

#include "base/planted.h"

namespace berth::sched {

void count_stopped(const state::State& state, QueueId queue, StoppedBelow& stopped) {
  for (QueueId q = state.limits_evictions(queue); q.valid(); q = state.next_limit(q)) ++stopped[q];
}

bool EvictionLimits::take(QueueId queue) {
  if (planted(Bug::kQueueRateIgnored)) return true;
  for (QueueId q = state_.limits_evictions(queue); q.valid(); q = state_.next_limit(q)) {
    const state::QueueState& limiting = state_.queue(q);
    const auto [known, fresh] = left_.try_emplace(q, 0);
    if (fresh) {
      known->second = limiting.evictions.left(limiting.eviction.evictions_per_hour, now_);
      if (stopped_ != nullptr && stopped_->contains(q)) known->second -= stopped_->at(q);
    }
    if (known->second > 0) continue;
    if (!refused_by_.valid()) refused_by_ = q;
    next_ = std::min(next_, limiting.evictions.next(now_));
    return false;
  }
  for (QueueId q = state_.limits_evictions(queue); q.valid(); q = state_.next_limit(q)) --left_.at(q);
  return true;
}

}  // namespace berth::sched

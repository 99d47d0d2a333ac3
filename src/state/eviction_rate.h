#pragma once
// EvictionRate: the times of the evictions by reclaim and preemption in the last hour, for the limits
// evictions_per_hour of the cluster and of queues. The hour is a sliding window: an eviction is forgotten an hour after
// it. Moves for consolidation are counted in the same way.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/timestamp.h"

namespace berth::state {

class EvictionRate {
 public:
  static constexpr std::int64_t kWindowMs = 3'600'000;

  // Records one eviction at `now`.
  void note(Timestamp now) {
    stopped_.erase(stopped_.begin(), first_recent(now));
    stopped_.push_back(now);
  }

  // Removes the eviction that was recorded at `stopped`, because it was cancelled. Returns true if it was recorded.
  bool forget(Timestamp stopped) {
    const auto one = std::lower_bound(stopped_.begin(), stopped_.end(), stopped);
    if (one == stopped_.end() || *one != stopped) return false;
    stopped_.erase(one);
    return true;
  }
  // Records a removed eviction again: a transaction undoes forget() with it.
  void recall(Timestamp stopped) {
    stopped_.insert(std::upper_bound(stopped_.begin(), stopped_.end(), stopped), stopped);
  }

  // Returns how many more evictions `limit` allows at `now`.
  std::int64_t left(std::int64_t limit, Timestamp now) const { return std::max<std::int64_t>(0, limit - recent(now)); }

  // Returns when the oldest eviction leaves the window, so that one more is allowed than at `now`; never() if there is
  // none.
  Timestamp next(Timestamp now) const {
    const auto first = first_recent(now);
    return first == stopped_.end() ? Timestamp::never() : *first + kWindowMs;
  }

  const std::vector<Timestamp>& save() const { return stopped_; }
  void load(std::vector<Timestamp> stopped) { stopped_ = std::move(stopped); }

 private:
  std::vector<Timestamp>::const_iterator first_recent(Timestamp now) const {
    return std::upper_bound(stopped_.begin(), stopped_.end(), Timestamp{now.ms - kWindowMs});
  }
  std::int64_t recent(Timestamp now) const { return stopped_.end() - first_recent(now); }

  std::vector<Timestamp> stopped_;  // ascending
};

}  // namespace berth::state

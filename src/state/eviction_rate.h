#pragma once
// How many gangs reclaim and preemption have stopped of late, for the evictions_per_hour of the cluster and of queues.
// An hour slides: what was stopped is forgotten an hour after it.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/timestamp.h"

namespace berth::state {

class EvictionRate {
 public:
  static constexpr std::int64_t kWindowMs = 3'600'000;

  void note(Timestamp now) {
    stopped_.erase(stopped_.begin(), first_recent(now));
    stopped_.push_back(now);
  }

  // One that was stopped then goes on after all, and counts no more; says whether it had counted.
  bool forget(Timestamp stopped) {
    const auto one = std::lower_bound(stopped_.begin(), stopped_.end(), stopped);
    if (one == stopped_.end() || *one != stopped) return false;
    stopped_.erase(one);
    return true;
  }
  void recall(Timestamp stopped) {
    stopped_.insert(std::upper_bound(stopped_.begin(), stopped_.end(), stopped), stopped);
  }

  // How many more may be stopped now.
  std::int64_t left(std::int64_t limit, Timestamp now) const { return std::max<std::int64_t>(0, limit - recent(now)); }

  // When one more may be stopped than now.
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

  std::vector<Timestamp> stopped_;  // in order
};

}  // namespace berth::state

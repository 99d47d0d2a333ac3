#pragma once
// The clock by which the loop decides and which reads show. It follows the wall clock, but never goes back and never
// stops. If the wall clock is set back, it goes on from its time, slower by 1/64, until the wall clock has caught up.
// So a wall clock that was an hour ahead by mistake does not freeze grace times and back-offs, and its effect ends. Any
// thread may call it.

#include <cstdint>
#include <mutex>

#include "base/timestamp.h"

namespace berth::daemon {

// Returns the time of the clock `elapsed_us` (by the steady clock) after it showed `last_us`.
constexpr std::int64_t shown_after(std::int64_t last_us, std::int64_t elapsed_us, std::int64_t wall_us) {
  const std::int64_t slowed_us = last_us + elapsed_us - elapsed_us / 64;
  return wall_us > slowed_us ? wall_us : slowed_us;
}

class ServerClock {
 public:
  ServerClock();
  Timestamp now();
  // Sets a lower bound: the clock does not go behind times that were recorded before the start.
  void not_before(Timestamp time);

 private:
  std::mutex mutex_;
  std::int64_t last_us_ = 0;
  std::int64_t steady_us_ = 0;  // steady clock at last_us_
};

}  // namespace berth::daemon

#pragma once
// The time that the loop decides by and the reads show. It follows the clock of the wall, but it never goes back and
// never stands still: when the wall's clock is set back, it goes on from where it was, a sixty-fourth slower, until the
// wall's has caught up. So a mistaken hour ahead neither freezes grace times and back-offs for an hour nor lasts for
// ever. Safe to call from any thread.

#include <cstdint>
#include <mutex>

#include "base/timestamp.h"

namespace berth::daemon {

// What the clock shows `elapsed_us` after it showed `last_us`, by a clock that nobody sets.
constexpr std::int64_t shown_after(std::int64_t last_us, std::int64_t elapsed_us, std::int64_t wall_us) {
  const std::int64_t slowed_us = last_us + elapsed_us - elapsed_us / 64;
  return wall_us > slowed_us ? wall_us : slowed_us;
}

class ServerClock {
 public:
  ServerClock();
  Timestamp now();
  // What was recorded before the start is not gone back behind.
  void not_before(Timestamp time);

 private:
  std::mutex mutex_;
  std::int64_t last_us_ = 0;
  std::int64_t steady_us_ = 0;  // when it showed that
};

}  // namespace berth::daemon

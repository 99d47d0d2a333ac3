#pragma once
// The time that the server decides by, computed from readings of two clocks. The boot clock counts the time that has
// passed, also while the machine is suspended, and nobody can set it. The wall clock says which time it is, and may be
// wrong.
//
// 1. Between two readings the boot clock counts.
// 2. A wall clock that is at most `kSmallUs` off is followed slowly, by at most 1/2000 of the time that passes.
// 3. A wall clock that is further off is not followed until it is confirmed or is right again. Otherwise a step would
//    end time limits, be billed, and delete what is kept for a while.
// 4. The time never goes back. If a confirmed wall clock is behind, the time passes slower by 1/64 until the wall clock
//    has caught up. So grace times and back-offs do not freeze.

#include <cstdint>

#include "base/timestamp.h"

namespace berth {

struct ClockReadings {
  std::int64_t boot_us = 0;  // CLOCK_BOOTTIME
  std::int64_t wall_us = 0;  // CLOCK_REALTIME
};

class ClockDiscipline {
 public:
  static constexpr std::int64_t kSmallUs = 5'000'000;
  static constexpr std::int64_t kSlewDivisor = 2000;
  static constexpr std::int64_t kSlowDivisor = 64;

  // At these readings it is `begin`, but the clock shows no time before `not_before`.
  ClockDiscipline(ClockReadings first, Timestamp begin, Timestamp not_before = {});

  // Returns the time at these readings. The boot clock of the readings does not go back.
  Timestamp read(ClockReadings readings);

  // All about the last readings. Return by how much the wall clock is ahead of the clock, and the right time of the
  // boot clock.
  std::int64_t offset_ms() const { return (last_.wall_us - shown_us_) / 1000; }
  std::int64_t ahead_us() const { return believed_ahead_us_; }
  // Returns true if the wall clock is followed; false: it is too far off and not confirmed.
  bool follows_wall() const;

  // Follows the wall clock if it is still `offset_ms` ahead, give or take what counts as small. Returns false if it is
  // not.
  bool confirm(std::int64_t offset_ms);

 private:
  std::int64_t wall_ahead_us() const { return last_.wall_us - last_.boot_us - believed_ahead_us_; }

  ClockReadings last_;
  std::int64_t believed_ahead_us_ = 0;  // how much the right time is ahead of the boot clock
  std::int64_t shown_us_ = 0;
};

// Returns the time at which a server begins that has recorded events until `last_event`. The wall clock is believed if
// it is neither behind (by more than what counts as small) nor more than `max_downtime_ms` ahead; otherwise the time
// goes on from the last event. `last_event` 0 means that nothing is recorded: the wall clock is believed.
Timestamp begin_after(Timestamp last_event, Timestamp wall, std::int64_t max_downtime_ms);

}  // namespace berth

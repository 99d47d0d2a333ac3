#pragma once
// The clock by which the loop decides and which reads show: the boot clock, set by the wall clock as
// base/clock_discipline.h says. A wall clock that is not followed is logged. Any thread may call it.
//
// The file `clock` in the data directory has the boot id of the machine and how far the time is ahead of the boot
// clock. So a server that starts again before a reboot goes on with the same time, whatever the wall clock says by
// then.
//
// A test need not wait: it can let both clocks of a server be ahead of those of the machine, by the milliseconds that a
// file names (serve --test-clock). What the file says is read again each time, and counts only where it is more than
// before. A build without planted bugs (base/planted.h), such as every release, has no such flag.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock_discipline.h"
#include "base/timestamp.h"

namespace berth::daemon {

class ServerClock {
 public:
  struct Status {
    Timestamp time;
    std::int64_t wall_offset_ms = 0;  // how much the wall clock is ahead
    bool follows_wall = true;
  };

  explicit ServerClock(std::string test_clock = {});  // begins with the wall clock

  // Begins again for a log whose last event has this time (0: there is none). After a reboot it goes on from the last
  // event if the wall clock is behind it, or further ahead than `max_downtime_ms`.
  void begin(const std::string& data_dir, Timestamp last_event, std::int64_t max_downtime_ms);

  Timestamp now();
  Status status();
  // Follows the wall clock if it is still this much ahead (see ClockDiscipline::confirm).
  bool confirm(std::int64_t offset_ms);

 private:
  ClockReadings read_clocks();
  Timestamp read();  // requires the lock
  void tell_changes();
  void save();

  std::mutex mutex_;
  std::string test_clock_;      // a file; empty: none
  std::int64_t pushed_us_ = 0;  // what it said, at most
  ClockDiscipline discipline_;
  std::string file_;  // empty: nothing is saved
  std::optional<std::int64_t> saved_ahead_us_;
  bool told_unfollowed_ = false;
};

// Returns "2h ahead of" or "3s behind": where the wall clock is, seen from the server's clock.
std::string offset_in_words(std::int64_t offset_ms);

}  // namespace berth::daemon

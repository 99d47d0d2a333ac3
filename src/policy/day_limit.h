#pragma once
// How much each subject's requests may write into the event log in a day of UTC. The rate limit bounds a burst; this
// bounds what stays: events are kept, so a subject that asks at the rate limit all day long would fill any disk. Pure:
// the time is an argument. Its memory is bounded: when it holds as many subjects as it may, all of which have written
// today, further subjects share one count.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/timestamp.h"
#include "policy/recent_keys.h"

namespace berth::policy {

class DayLimit {
 public:
  // `bytes` 0: no limit.
  DayLimit(std::uint64_t bytes, std::size_t most_subjects) : limit_(bytes), subjects_(most_subjects) {}

  struct Taken {
    bool ok = true;
    bool first_refusal = false;    // the subject's first of this day
    std::uint64_t used_bytes = 0;  // of this day, before
  };

  // Takes so many bytes of the subject's day, or none of them where not all are left.
  Taken take(std::string_view subject, std::uint64_t bytes, Timestamp now);
  // Gives back what `take` took on this day for a request that was refused.
  void give_back(std::string_view subject, std::uint64_t bytes, Timestamp now);

  std::uint64_t limit() const { return limit_; }
  std::size_t subjects() const { return subjects_.size(); }

 private:
  struct Day {
    std::int64_t number = -1;  // since the epoch
    std::uint64_t bytes = 0;
    bool was_refused = false;
  };

  Day& day_of(std::string_view subject, Timestamp now);

  std::uint64_t limit_;
  RecentKeys<Day> subjects_;
  Day shared_;
};

}  // namespace berth::policy

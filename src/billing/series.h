#pragma once
// A Series integrates a usage rate over time, in exact integers. The rate changes now and then. Milli-GPUs times
// milliseconds are micro-GPU-seconds, milli-cores times milliseconds micro-core-seconds; memory is MiB times
// milliseconds.
//
// Amounts are kept by the hour for ever (hours of UTC; an interval that crosses an hour is split exactly). The
// intervals themselves are kept for kRecentHours. So a window on full hours is exact at any age, and any other window
// is exact while its edges are recent.

#include <array>
#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "base/fields.h"
#include "base/timestamp.h"

namespace berth::billing {

inline constexpr std::int64_t kHourMs = 3'600'000;
inline constexpr std::int64_t kRecentHours = 24;

constexpr std::int64_t hour_of(Timestamp time) {
  return time.ms >= 0 ? time.ms / kHourMs : -((-time.ms + kHourMs - 1) / kHourMs);
}
constexpr bool on_the_hour(Timestamp time) { return time.ms % kHourMs == 0; }

// Indexes of GPUs, CPUs and memory, which change together.
inline constexpr std::size_t kGpu = 0;
inline constexpr std::size_t kCpu = 1;
inline constexpr std::size_t kMemory = 2;
using Rates = std::array<std::int64_t, 3>;
using Amounts = std::array<Int128, 3>;

class Series {
 public:
  const Rates& rates() const { return rates_; }
  bool is_still() const { return rates_ == Rates{}; }

  // Adds `delta` to the rates from `now` on. Requires: `now` is not earlier than in the last change.
  void change(const Rates& delta, Timestamp now);
  // Returns the amounts in [from, to). After the last change the present rates are taken to go on. Requires: the edges
  // are recent or on full hours (see above).
  Amounts between(Timestamp from, Timestamp to) const;
  // Returns the amounts from the beginning to `now`.
  Amounts total(Timestamp now) const;
  // Deletes the intervals that end before this hour; their amounts stay in the hours.
  void forget_intervals_before(std::int64_t hour);

  bool operator==(const Series&) const = default;
  static constexpr auto fields() {
    return field_list(field("rates", &Series::rates_), field("since", &Series::since_), field("hours", &Series::hours_),
                      field("recent", &Series::recent_));
  }

 private:
  struct Hour {
    std::int64_t hour = 0;
    Rates amounts{};
    bool operator==(const Hour&) const = default;
    static constexpr auto fields() { return field_list(field("hour", &Hour::hour), field("amounts", &Hour::amounts)); }
  };
  struct Interval {
    Timestamp begin;
    Timestamp end;
    Rates rates{};
    bool operator==(const Interval&) const = default;
    static constexpr auto fields() {
      return field_list(field("begin", &Interval::begin), field("end", &Interval::end),
                        field("rates", &Interval::rates));
    }
  };

  void close(Timestamp now);
  void add_hours(std::int64_t first, std::int64_t past, Amounts& sum) const;
  void add_intervals(Timestamp from, Timestamp to, Amounts& sum) const;

  Rates rates_{};
  Timestamp since_;               // start of the present rates
  std::vector<Hour> hours_;       // ascending; hours without usage are absent
  std::vector<Interval> recent_;  // ascending, disjoint
};

}  // namespace berth::billing

#pragma once
// Off-peak windows: times of the week, by the clock of a time zone, at which GPUs cost less. An instant lies in a
// window if the clock of the zone shows a time of the window then. So an hour that is there twice counts twice, and one
// that is skipped not at all. Pure: what the clocks of a zone do is handed in as a TimeZone, and stored with the
// prices, so that a bill does not depend on the time zone data of the machine that computes it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/timestamp.h"

namespace berth {

enum class Weekday { kMonday, kTuesday, kWednesday, kThursday, kFriday, kSaturday, kSunday };
BERTH_ENUM_NAMES(Weekday, "mon", "tue", "wed", "thu", "fri", "sat", "sun");

inline constexpr std::int64_t kDayMinutes = 24 * 60;

struct OffPeak {
  std::vector<Weekday> days = {};  // on which the window begins; empty: all
  std::int64_t from_min = 0;       // minutes after midnight
  std::int64_t to_min = 0;         // at most 24:00; before from_min: on the next day
  std::string zone = {};           // such as Europe/Paris
  std::int64_t discount_percent = 0;
  bool operator==(const OffPeak&) const = default;
  static constexpr auto fields() {
    return field_list(field("days", &OffPeak::days), field("from_min", &OffPeak::from_min),
                      field("to_min", &OffPeak::to_min), field("zone", &OffPeak::zone),
                      field("discount_percent", &OffPeak::discount_percent));
  }
};

// From this instant on the clocks of the zone are so much ahead of UTC.
struct ClockChange {
  Timestamp from;
  std::int64_t offset_s = 0;
  bool operator==(const ClockChange&) const = default;
  static constexpr auto fields() {
    return field_list(field("from", &ClockChange::from), field("offset_s", &ClockChange::offset_s));
  }
};

struct TimeZone {
  std::string name = {};
  std::vector<ClockChange> changes = {};  // ascending, at least one; the first counts for all time before it, too
  bool operator==(const TimeZone&) const = default;
  static constexpr auto fields() {
    return field_list(field("name", &TimeZone::name), field("changes", &TimeZone::changes));
  }
};

// Returns the zone of that name from 1970 on, or nothing if there is none.
using ZoneSource = std::function<std::optional<TimeZone>(const std::string&)>;

struct TimeSpan {
  Timestamp begin;
  Timestamp end;
  bool operator==(const TimeSpan&) const = default;
};

bool lies_in(const OffPeak& window, const TimeZone& zone, Timestamp time);
// Returns the times within [from, to) that lie in the window, as ascending spans that do not touch.
std::vector<TimeSpan> spans_of(const OffPeak& window, const TimeZone& zone, Timestamp from, Timestamp to);

// Returns "20:00" for 1200.
std::string clock_time(std::int64_t minutes);

}  // namespace berth

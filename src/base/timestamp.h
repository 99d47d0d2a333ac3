#pragma once
// Timestamp: the time as milliseconds since the Unix epoch. The core gets it as an argument and reads no clock. The
// daemon's loop reads the clock once per batch and never lets it go back; the simulator makes it up.

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

struct Timestamp {
  std::int64_t ms = 0;

  static constexpr Timestamp never() { return {std::numeric_limits<std::int64_t>::max()}; }
  constexpr bool is_never() const { return ms == std::numeric_limits<std::int64_t>::max(); }
  constexpr auto operator<=>(const Timestamp&) const = default;
};

// Saturates at never(), so that "no limit" stays "no limit" after an addition.
constexpr Timestamp operator+(Timestamp time, std::int64_t delta_ms) {
  if (delta_ms > 0 && time.ms > std::numeric_limits<std::int64_t>::max() - delta_ms) return Timestamp::never();
  return {time.ms + delta_ms};
}
constexpr std::int64_t operator-(Timestamp later, Timestamp earlier) { return later.ms - earlier.ms; }

// Returns text such as "2026-11-21T08:15:30.250Z".
std::string to_iso8601(Timestamp time);

// Reads "2026-11-21", "2026-11-21T08:15Z", "2026-11-21T08:15:30.25Z" (cut to milliseconds), +02:00 or the like for Z,
// and "never". Returns nothing for other text, a day that does not exist, or a year outside 1 to 9999.
std::optional<Timestamp> from_iso8601(std::string_view text);

// Returns what to add to the refusal of a text that names a leap second, such as 2016-12-31T23:59:60Z: it is no instant
// here, since days have 86400 seconds. Empty for other text.
std::string leap_second_note(std::string_view text);

}  // namespace berth

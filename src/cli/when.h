#pragma once
// Times and spans as the command line takes and shows them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/timestamp.h"

namespace berth::cli {

Timestamp clock_now();

// Reads a time as people write it:
//
// - ISO 8601, of UTC: "2026-11-21", "2026-11-21T08:15:30Z";
// - "now", and a span before or after it: "-24h", "+2h", "2h ago", "3 days ago", "in 2h";
// - in the zone of the reader: "18:00" (today), "today", "yesterday", "tomorrow", each alone (midnight) or with a time
//   of day: "yesterday 18:00"; "2026-11-21 18:00". A time that the clocks skip or show twice is refused, with the
//   instants that may be meant.
Result<Timestamp> parse_when(std::string_view text, Timestamp now);
// The same time as ISO 8601; "" for "".
Result<std::string> iso_when(const std::string& text, Timestamp now);
// A past moment as the API takes it: the number of an event as it is, else as iso_when.
Result<std::string> moment_when(const std::string& text, Timestamp now);

// "0s", "42s", "3m12s", "2h05m", "3d04h": two units at most, nothing below a second.
std::string span_text(std::int64_t ms);

// The span between an ISO time and now, or empty when there is no such time.
std::string age_text(std::string_view iso, Timestamp now);

// An ISO time in the zone of the reader: "2026-11-21 08:15:30Z" in UTC, else "2026-11-21 09:15:30+01:00"; the text
// itself where it is none.
std::string clock_text(std::string_view iso);

}  // namespace berth::cli

#pragma once
// Times and spans as the command line takes and shows them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/timestamp.h"

namespace berth::cli {

Timestamp clock_now();

// ISO 8601 ("2026-11-21", "2026-11-21T08:15:30Z"), "now", or a span before or after now: "-24h", "-90s", "+2h".
Result<Timestamp> parse_when(std::string_view text, Timestamp now);

// "0s", "42s", "3m12s", "2h05m", "3d04h": two units at most, nothing below a second.
std::string span_text(std::int64_t ms);

// The span between an ISO time and now, or empty when there is no such time.
std::string age_text(std::string_view iso, Timestamp now);

// "2026-11-21 08:15:30Z", from an ISO time; the text itself where it is none.
std::string clock_text(std::string_view iso);

}  // namespace berth::cli

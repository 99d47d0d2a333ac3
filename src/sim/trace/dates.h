#pragma once
// Dates of trace cells as instants. A date that states its offset from UTC is exact. Any other is read by the clocks of
// a time zone, else as UTC; where these clocks skip a time or show it twice, no instant is guessed.

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "model/off_peak.h"

namespace berth::sim {

// Reads "2017-10-07 01:11:39", or with a T; "Z", "+02:00" or "+0200" may follow. Returns milliseconds since 1970.
// `zone` null: UTC. The error says what is wrong, without the text.
Result<std::int64_t> date_ms(std::string_view text, const TimeZone* zone);

// Returns true if the date states its offset from UTC.
bool states_offset(std::string_view text);

}  // namespace berth::sim

#pragma once
// The time zone data of the system (Debian: tzdata), read by Howard Hinnant's library.

#include <optional>
#include <string>

#include "model/off_peak.h"

namespace berth::timezone {

// Returns the zone of that name, such as Europe/Paris, with the changes of its clocks from 1970 to 2037, where the data
// ends: after that the last offset goes on. Returns nothing if the system knows no such zone, or has no such data.
std::optional<TimeZone> zone_of(const std::string& name);

}  // namespace berth::timezone

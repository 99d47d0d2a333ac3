#include "timezone/time_zones.h"

#include <date/tz.h>

#include <exception>

namespace berth::timezone {

std::optional<TimeZone> zone_of(const std::string& name) {
  try {
    const date::time_zone* found = date::locate_zone(name);
    const date::sys_seconds end = date::sys_days{date::year{2038} / 1 / 1};
    TimeZone zone{name, {}};
    for (date::sys_seconds at{}; at < end;) {
      const date::sys_info info = found->get_info(at);
      const std::int64_t offset_s = info.offset.count();
      // A change of the name alone, or of what counts as summer, moves no clock.
      if (zone.changes.empty() || zone.changes.back().offset_s != offset_s)
        zone.changes.push_back({Timestamp{std::int64_t{at.time_since_epoch().count()} * 1000}, offset_s});
      if (info.end <= at) break;
      at = info.end;
    }
    return zone;
  } catch (const std::exception&) {  // no such zone; or no data at all
    return std::nullopt;
  }
}

}  // namespace berth::timezone

#include "timezone/time_zones.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace berth::timezone {
namespace {

Timestamp zone_time(const std::string& text) { return from_iso8601(text).value(); }

bool has_change(const TimeZone& zone, const std::string& from, std::int64_t offset_s) {
  const ClockChange wanted{zone_time(from), offset_s};
  return std::find(zone.changes.begin(), zone.changes.end(), wanted) != zone.changes.end();
}

}  // namespace

TEST_CASE("the clocks of a zone change when the system's data says so") {
  const auto paris = zone_of("Europe/Paris");
  REQUIRE(paris.has_value());
  CHECK_EQ(paris->changes.front(), ClockChange{Timestamp{0}, 3600});
  CHECK(has_change(*paris, "2026-03-29T01:00:00Z", 7200));
  CHECK(has_change(*paris, "2026-10-25T01:00:00Z", 3600));
  CHECK_EQ(paris->changes.back(), ClockChange{zone_time("2037-10-25T01:00:00Z"), 3600});
  const auto lord_howe = zone_of("Australia/Lord_Howe");  // half an hour
  REQUIRE(lord_howe.has_value());
  CHECK(has_change(*lord_howe, "2026-04-04T15:00:00Z", 37800));
  CHECK_EQ(zone_of("UTC").value().changes.size(), 1);
}

TEST_CASE("a zone that the system does not know is none") {
  for (const char* name : {"", "Europe/Pariss", "../../etc/passwd", "/etc/localtime"}) CHECK_FALSE(zone_of(name));
}

TEST_CASE("a night has an hour more when the clocks go back") {
  const OffPeak night{{}, 20 * 60, 8 * 60, "Europe/Paris", 30};
  const TimeZone paris = zone_of("Europe/Paris").value();
  const auto hours = [&](const char* from, const char* to) {
    const auto spans = spans_of(night, paris, zone_time(from), zone_time(to));
    REQUIRE_EQ(spans.size(), 1);
    return (spans[0].end - spans[0].begin) / 3'600'000;
  };
  CHECK_EQ(hours("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"), 13);
  CHECK_EQ(hours("2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"), 11);
}

}  // namespace berth::timezone

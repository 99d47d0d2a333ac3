#include "sim/trace/dates.h"

#include <doctest/doctest.h>

#include <string>

#include "base/timestamp.h"
#include "timezone/time_zones.h"

namespace berth::sim {
namespace {

std::string read(const std::string& text, const TimeZone* zone = nullptr) {
  const auto ms = date_ms(text, zone);
  return ms ? to_iso8601(Timestamp{*ms}) : ms.error().message;
}

}  // namespace

TEST_CASE("a date without a zone is read as UTC, and one that states its offset by that") {
  CHECK(read("2017-10-07 01:11:39") == "2017-10-07T01:11:39.000Z");
  CHECK(read("2017-10-07T01:11:39") == "2017-10-07T01:11:39.000Z");
  CHECK(read("2017-10-07T01:11:39Z") == "2017-10-07T01:11:39.000Z");
  CHECK(read("2017-10-07T01:11:39+02:00") == "2017-10-06T23:11:39.000Z");
  CHECK(read("2017-10-07T01:11:39-0530") == "2017-10-07T06:41:39.000Z");
  for (const char* wrong : {"2017-10-07", "2017-10-07 01:11:39 ", "2017-10-07 01:11:39+2", "2017-10-07 01:11:39+24:00",
                            "2017-10-07 01:11:39+02:60", "2017-10-07 01:11:39CET", "2017-13-07 01:11:39"}) {
    CHECK_MESSAGE(read(wrong) == "not a date", wrong);
  }
}

TEST_CASE("in a zone a date is what its clocks show, and a time that they skip or show twice is refused") {
  const auto berlin = timezone::zone_of("Europe/Berlin");
  if (!berlin) {
    MESSAGE("SKIPPED: this machine has no time zone data");
    return;
  }
  CHECK(read("2027-01-15 12:00:00", &*berlin) == "2027-01-15T11:00:00.000Z");
  CHECK(read("2027-07-15 12:00:00", &*berlin) == "2027-07-15T10:00:00.000Z");
  CHECK(read("2027-07-15 12:00:00Z", &*berlin) == "2027-07-15T12:00:00.000Z");
  CHECK(read("2027-03-28 01:59:59", &*berlin) == "2027-03-28T00:59:59.000Z");
  CHECK(read("2027-03-28 02:30:00", &*berlin) ==
        "the clocks of Europe/Berlin skip that time; a date with its offset, as +01:00, is exact");
  CHECK(read("2027-03-28 03:00:00", &*berlin) == "2027-03-28T01:00:00.000Z");
  CHECK(read("2027-10-31 02:30:00", &*berlin) ==
        "the clocks of Europe/Berlin show that time twice; a date with its offset, as +01:00, is exact");
  CHECK(read("2027-10-31 02:30:00+01:00", &*berlin) == "2027-10-31T01:30:00.000Z");
  CHECK(read("2027-10-31 03:00:00", &*berlin) == "2027-10-31T02:00:00.000Z");
}

}  // namespace berth::sim

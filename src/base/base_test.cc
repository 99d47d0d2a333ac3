#include <doctest/doctest.h>

#include "base/checked.h"
#include "base/random.h"
#include "base/timestamp.h"

namespace berth {

TEST_CASE("a timestamp prints as ISO 8601 in UTC, before and after the epoch") {
  CHECK_EQ(to_iso8601({0}), "1970-01-01T00:00:00.000Z");
  CHECK_EQ(to_iso8601({1'782'000'000'123}), "2026-06-21T00:00:00.123Z");
  CHECK_EQ(to_iso8601({-1}), "1969-12-31T23:59:59.999Z");
  CHECK_EQ(to_iso8601(Timestamp::never()), "never");
}

TEST_CASE("every instant of a four-digit year reads back from its text") {
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    const Timestamp time{random.between(-62'135'596'800'000, 253'402'300'799'999)};
    CHECK_EQ(from_iso8601(to_iso8601(time)), time);
  }
  CHECK_EQ(from_iso8601("never"), Timestamp::never());
}

TEST_CASE("a timestamp is read with offset, decimals, or as a date alone") {
  CHECK_EQ(from_iso8601("2026-06-21"), Timestamp{1'782'000'000'000});
  CHECK_EQ(from_iso8601("2026-06-21T00:00Z"), Timestamp{1'782'000'000'000});
  CHECK_EQ(from_iso8601("2026-06-21T02:00:00.5+02:00"), Timestamp{1'782'000'000'500});
  CHECK_EQ(from_iso8601("2026-06-20T23:30:00.123456789-00:30"), Timestamp{1'782'000'000'123});
}

TEST_CASE("what is no instant is not read as one") {
  for (const char* text : {"", "2026", "2026-13-01", "2026-02-29", "2026-04-31", "2026-06-21T", "2026-06-21T24:00:00Z",
                           "2026-06-21T00:00:00", "2026-06-21T00:00", "2026-06-21T00:00.5Z", "2026-06-21T00:00:00.Z",
                           "2026-06-21T00:00:00.1234567890Z", "2026-06-21 00:00:00Z", "2026-06-21T00:00:00Zx",
                           "0000-01-01", "2026-06-21T00:00:60Z", "+2026-06-21", "2026-06-21T00:00:00+2:00"}) {
    CAPTURE(text);
    CHECK_FALSE(from_iso8601(text).has_value());
  }
}

TEST_CASE("a leap second is told from other text that is no instant") {
  CHECK(leap_second_note("2016-12-31T23:59:60Z").find("2016-12-31T23:59:59Z or") != std::string::npos);
  CHECK(leap_second_note("2016-12-31T23:59:60.5+01:00").find("2016-12-31T23:59:59.5+01:00 or") != std::string::npos);
  for (const char* text : {"", "2016-12-31T23:59:61Z", "2016-12-31T23:60:00Z", "2016-12-31", "2016-13-31T23:59:60Z"})
    CHECK_EQ(leap_second_note(text), "");
}

TEST_CASE("adding to a timestamp saturates at never") {
  CHECK_UNARY((Timestamp{5} + Timestamp::never().ms).is_never());
}

TEST_CASE("fractions compare exactly where doubles would not") {
  const std::int64_t big = 9'007'199'254'740'993;  // 2^53 + 1
  CHECK_UNARY(Fraction{big - 1, big} < Fraction{big, big + 1});
  CHECK_UNARY(Fraction{2, 4} == Fraction{1, 2});
  CHECK_UNARY(Fraction{5, 1} < Fraction{1, 0});
}

TEST_CASE("a seed names one sequence for ever") {
  Random random(42);
  CHECK_EQ(random.next(), Random(42).next());
  for (int i = 0; i < 1000; ++i) {
    const auto value = random.between(-3, 3);
    CHECK_UNARY(value >= -3);
    CHECK_UNARY(value <= 3);
  }
}

}  // namespace berth

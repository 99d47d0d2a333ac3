#include "model/month.h"

#include <doctest/doctest.h>

namespace berth {

TEST_CASE("a month is one of UTC, from its first moment to that of the next") {
  const auto december = month_of("2026-12");
  REQUIRE(december.has_value());
  CHECK_EQ(to_iso8601(december->end), "2027-01-01T00:00:00.000Z");
  CHECK_EQ(month_at(Timestamp{december->end.ms - 1}).name, "2026-12");
  CHECK_EQ(month_at(december->end).name, "2027-01");
  for (const char* wrong : {"2026-13", "2026-00", "2026-1", "26-11", "2026/11", "2026-11-01", "", "abcd-ef"})
    CHECK_FALSE(month_of(wrong).has_value());
}

}  // namespace berth

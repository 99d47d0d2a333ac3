#include "policy/day_limit.h"

#include <doctest/doctest.h>

#include <string>

namespace berth::policy {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;

TEST_CASE("day limit: each subject may write so much a day, and stops at it by itself") {
  DayLimit limit(1'000, 100);
  CHECK(limit.take("eve", 600, {0}).ok);
  CHECK(limit.take("eve", 400, {1}).ok);
  const auto refused = limit.take("eve", 1, {2});
  CHECK_FALSE(refused.ok);
  CHECK(refused.first_refusal);
  CHECK(refused.used_bytes == 1'000);
  CHECK_FALSE(limit.take("eve", 1, {3}).first_refusal);
  CHECK(limit.take("bob", 1'000, {3}).ok);
}

TEST_CASE("day limit: one request above what is left takes nothing, and a smaller one still passes") {
  DayLimit limit(1'000, 100);
  CHECK_FALSE(limit.take("eve", 1'001, {0}).ok);
  CHECK(limit.take("eve", 900, {0}).ok);
  CHECK_FALSE(limit.take("eve", 101, {0}).ok);
  CHECK(limit.take("eve", 100, {0}).ok);
}

TEST_CASE("day limit: it begins anew at midnight of UTC, and a clock that goes back gives nothing") {
  DayLimit limit(1'000, 100);
  CHECK(limit.take("eve", 1'000, {kDayMs - 1}).ok);
  CHECK_FALSE(limit.take("eve", 1, {kDayMs - 1}).ok);
  CHECK(limit.take("eve", 1'000, {kDayMs}).ok);
  CHECK_FALSE(limit.take("eve", 1, {kDayMs - 1}).ok);
  CHECK(limit.take("eve", 1, {2 * kDayMs}).ok);
}

TEST_CASE("day limit: a request that is refused in the end costs nothing") {
  DayLimit limit(1'000, 100);
  CHECK(limit.take("eve", 1'000, {0}).ok);
  limit.give_back("eve", 1'000, {1});
  CHECK(limit.take("eve", 1'000, {2}).ok);
  limit.give_back("eve", 1'000, {kDayMs});  // of another day
  CHECK(limit.take("eve", 1'000, {kDayMs}).ok);
  CHECK_FALSE(limit.take("eve", 1, {kDayMs}).ok);
}

TEST_CASE("day limit: any number of subjects is held in bounded memory, and they write no more for it") {
  DayLimit limit(1'000, 50);
  int whole_days = 0;
  for (int i = 0; i < 10'000; ++i) whole_days += limit.take("user " + std::to_string(i), 1'000, {0}).ok ? 1 : 0;
  CHECK(limit.subjects() == 50);
  CHECK(whole_days == 50 + 1);
  CHECK(limit.take("late", 1'000, {kDayMs}).ok);  // those of yesterday make room
  CHECK(limit.subjects() == 50);
}

TEST_CASE("day limit: without a limit nothing is counted") {
  DayLimit limit(0, 50);
  for (int i = 0; i < 100; ++i) CHECK(limit.take("eve", 1ULL << 60U, {0}).ok);
  CHECK(limit.subjects() == 0);
}

}  // namespace
}  // namespace berth::policy

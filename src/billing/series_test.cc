#include "billing/series.h"

#include <doctest/doctest.h>

#include "base/codec.h"
#include "base/random.h"

namespace berth::billing {
namespace {

struct Change {
  Timestamp at;
  Rates delta;
};

// Returns the amount in [from, to), change by change.
Amounts naive(const std::vector<Change>& changes, Timestamp from, Timestamp to) {
  Amounts sum{};
  for (const Change& change : changes) {
    if (change.at >= to) continue;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += Int128{change.delta[i]} * (to - std::max(change.at, from));
  }
  return sum;
}

}  // namespace

TEST_CASE("any window over kept intervals, and any window of full hours, is exact") {
  Random random(7);
  for (int run = 0; run < 20; ++run) {
    Series series;
    std::vector<Change> changes;
    Timestamp now{random.between(0, 5 * kHourMs)};
    Rates rates{};
    for (int i = 0; i < 400; ++i) {
      Rates delta{};
      for (std::size_t k = 0; k < delta.size(); ++k) {
        delta[k] = random.between(-std::min<std::int64_t>(rates[k], 9), 9);
        rates[k] += delta[k];
      }
      series.change(delta, now);
      changes.push_back({now, delta});
      now = now + random.between(0, random.chance(50) ? 30 * kHourMs : kHourMs / 4);
    }
    const std::int64_t horizon = hour_of(now) - kRecentHours;
    if (run % 2 == 0) series.forget_intervals_before(horizon);
    for (int window = 0; window < 300; ++window) {
      Timestamp from{random.between(0, now.ms + kHourMs)};
      Timestamp to{random.between(from.ms, now.ms + 2 * kHourMs)};
      if (run % 2 == 0 && hour_of(from) < horizon) from = {hour_of(from) * kHourMs};
      if (run % 2 == 0 && hour_of(to) < horizon) to = {hour_of(to) * kHourMs};
      CHECK(series.between(from, to) == naive(changes, from, to));
    }
    CHECK(series.total(now) == naive(changes, {0}, now));
    const auto loaded = decode<Series>(encode(series));
    REQUIRE(loaded.has_value());
    CHECK(loaded->total(now) == series.total(now));
  }
}

TEST_CASE("hours are those of UTC, before 1970 as well") {
  CHECK_EQ(hour_of({0}), 0);
  CHECK_EQ(hour_of({kHourMs - 1}), 0);
  CHECK_EQ(hour_of({kHourMs}), 1);
  CHECK_EQ(hour_of({-1}), -1);
  CHECK_EQ(hour_of({-kHourMs}), -1);
}

}  // namespace berth::billing

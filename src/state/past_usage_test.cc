#include "state/past_usage.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace berth::state {
namespace {

constexpr std::int64_t kOne = std::int64_t{1} << kDecayBits;
constexpr std::int64_t kHour = 3'600'000;

std::int64_t kept(std::int64_t elapsed_ms, std::int64_t half_life_ms) {
  return static_cast<std::int64_t>(decay(elapsed_ms, half_life_ms));
}

}  // namespace

TEST_CASE("each half-life halves") {
  CHECK_EQ(kept(0, kHour), kOne);
  CHECK_EQ(kept(kHour, kHour), kOne / 2);
  CHECK_EQ(kept(2 * kHour, kHour), kOne / 4);
  CHECK_EQ(kept(40 * kHour, kHour), 0);
  CHECK_EQ(kept(kHour / 2, kHour), 3'037'000'499);  // floor(2^32 / sqrt 2)
}

TEST_CASE("decay in two steps is decay in one, and later is never more") {
  Random random(7);
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t half_life = random.between(1000, 40 * kHour);
    const std::int64_t first = random.between(0, 3 * half_life);
    const std::int64_t second = random.between(0, 3 * half_life);
    const Int128 steps = (Int128{kept(first, half_life)} * kept(second, half_life)) >> kDecayBits;
    const auto difference = static_cast<std::int64_t>(steps) - kept(first + second, half_life);
    CHECK_LE(difference, 4);
    CHECK_GE(difference, -4);
    CHECK_LE(kept(first + second, half_life), kept(first, half_life));
  }
}

TEST_CASE("what is used for long is the average, and what was used is forgotten by halves") {
  PastUsage past;
  past.since = {8000, 0, 1024};
  past.at = Timestamp{1000};
  CHECK_EQ(average_at(past, Timestamp{1000}, kHour), SharedAmounts{0, 0, 0});
  CHECK_EQ(average_at(past, Timestamp{1000 + kHour}, kHour), SharedAmounts{4000, 0, 512});
  CHECK_EQ(average_at(past, Timestamp{1000 + 40 * kHour}, kHour), SharedAmounts{8000, 0, 1024});
  past.average = {8000, 4, 0};
  past.since = {};
  CHECK_EQ(average_at(past, Timestamp{1000 + 2 * kHour}, kHour), SharedAmounts{2000, 1, 0});
}

}  // namespace berth::state

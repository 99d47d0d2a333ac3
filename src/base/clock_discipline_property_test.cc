// Random lives of a machine whose wall clock is set, slewed and confirmed.

#include <doctest/doctest.h>

#include <algorithm>

#include "base/clock_discipline.h"
#include "base/random.h"

namespace berth {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;

std::int64_t random_step_us(Random& random) {
  const std::int64_t most_s = random.chance(500) ? 10 : random.chance(500) ? 100'000 : 400'000'000;
  return random.between(-most_s * kSecondUs, most_s * kSecondUs);
}

TEST_CASE("time never goes back, and without a confirmation passes as the boot clock does") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    ClockReadings readings{random.between(0, 1'000'000) * kSecondUs, 1'700'000'000 * kSecondUs};
    ClockDiscipline clock(readings, {readings.wall_us / 1000});
    Timestamp shown = clock.read(readings);
    for (int i = 0; i < 300; ++i) {
      const std::int64_t elapsed_us =
          random.chance(100) ? 0 : random.between(0, random.chance(50) ? 90'000 : 60) * kSecondUs;
      readings.boot_us += elapsed_us;
      readings.wall_us += elapsed_us + (random.chance(100) ? random_step_us(random) : 0);
      const Timestamp next = clock.read(readings);
      const std::int64_t passed = next - shown;
      const std::int64_t elapsed_ms = elapsed_us / 1000;
      REQUIRE(passed >= elapsed_ms - elapsed_ms / ClockDiscipline::kSlowDivisor - 1);
      REQUIRE(passed <= elapsed_ms + elapsed_ms / ClockDiscipline::kSlewDivisor + 1);
      shown = next;
      if (!random.chance(30)) continue;
      const std::int64_t offset_ms = clock.offset_ms();
      REQUIRE(clock.confirm(offset_ms));
      const Timestamp after = clock.read(readings);
      REQUIRE(after >= shown);
      REQUIRE(after <= shown + std::max<std::int64_t>(0, offset_ms + 1));
      shown = after;
    }
  }
}

}  // namespace
}  // namespace berth

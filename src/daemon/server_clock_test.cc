#include "daemon/server_clock.h"

#include <doctest/doctest.h>

namespace berth::daemon {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kHourUs = 3600 * kSecondUs;

TEST_CASE("the server's clock is the wall's as long as that goes on") {
  CHECK(shown_after(100, 50, 150) == 150);
  CHECK(shown_after(100, 50, 149) == 150);          // two clocks that are read one after the other
  CHECK(shown_after(100, 50, kHourUs) == kHourUs);  // set forward, or the machine slept
}

TEST_CASE("the server's clock goes on when the wall's is set back, and lets it catch up") {
  std::int64_t wall = 1000 * kHourUs;
  std::int64_t shown = wall;
  wall -= 2 * kHourUs;
  std::int64_t hours = 0;
  for (; shown > wall; ++hours) {
    const std::int64_t before = shown;
    for (int second = 0; second < 3600; ++second) {
      wall += kSecondUs;
      shown = shown_after(shown, kSecondUs, wall);
    }
    CHECK(shown - before > kHourUs - 60 * kSecondUs);
    REQUIRE(hours < 1000);
  }
  CHECK(hours == 128);
  CHECK(shown == wall);
}

TEST_CASE("a server that starts again does not go back behind what it recorded, and does not wait for it") {
  ServerClock clock;
  const Timestamp recorded = clock.now() + 3'600'000;
  clock.not_before(recorded);
  const Timestamp first = clock.now();
  CHECK(first >= recorded);
  Timestamp later = first;
  while (later <= first + 20) later = clock.now();  // endless if the clock stops
  CHECK(later < recorded + 3'000'000);
}

}  // namespace
}  // namespace berth::daemon

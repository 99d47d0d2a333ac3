#include "base/clock_discipline.h"

#include <doctest/doctest.h>

namespace berth {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kHourUs = 3600 * kSecondUs;
constexpr std::int64_t kYearMs = std::int64_t{365} * 24 * 3'600'000;
constexpr Timestamp kNoon{1'700'000'000'000};

// A clock that began at noon on a right wall clock. Both clocks can be moved.
struct Machine {
  ClockReadings readings{123 * kSecondUs, kNoon.ms * 1000};
  ClockDiscipline clock{readings, kNoon};

  void pass(std::int64_t us) {
    readings.boot_us += us;
    readings.wall_us += us;
  }
  Timestamp read() { return clock.read(readings); }
};

TEST_CASE("a right wall clock is shown, also after the machine was suspended") {
  Machine machine;
  machine.pass(90 * kSecondUs);
  CHECK(machine.read() == kNoon + 90'000);
  machine.pass(8 * kHourUs);  // suspended: no reading between
  CHECK(machine.read() == kNoon + 90'000 + 8 * 3'600'000);
  CHECK(machine.clock.offset_ms() == 0);
  CHECK(machine.clock.follows_wall());
}

TEST_CASE("a step of the wall clock is not followed, forward or back, until it is confirmed or right again") {
  for (const std::int64_t step_ms : {std::int64_t{2 * 3'600'000}, 10 * kYearMs, std::int64_t{-3'600'000}}) {
    CAPTURE(step_ms);
    Machine machine;
    machine.readings.wall_us += step_ms * 1000;
    for (int minute = 1; minute <= 600; ++minute) {
      machine.pass(60 * kSecondUs);
      CHECK(machine.read() == kNoon + minute * 60'000);
    }
    CHECK_FALSE(machine.clock.follows_wall());
    CHECK(machine.clock.offset_ms() == step_ms);
    machine.readings.wall_us -= step_ms * 1000;
    CHECK(machine.read() == kNoon + 600 * 60'000);
    CHECK(machine.clock.follows_wall());
  }
}

TEST_CASE("a wall clock that is a little off is followed slowly") {
  Machine machine;
  machine.readings.wall_us += 4 * kSecondUs;
  machine.pass(1000 * kSecondUs);
  CHECK(machine.read() == kNoon + 1'000'500);
  CHECK(machine.clock.follows_wall());
  for (int i = 0; i < 8; ++i) {
    machine.pass(1000 * kSecondUs);
    machine.read();
  }
  CHECK(machine.clock.offset_ms() == 0);
  machine.readings.wall_us -= 4 * kSecondUs;
  const Timestamp before = machine.read();
  machine.pass(1000 * kSecondUs);
  CHECK(machine.read() == before + 999'500);
}

TEST_CASE("a confirmed wall clock is followed: at once if it is ahead, and slowly if it is behind") {
  Machine machine;
  machine.readings.wall_us += 2 * kHourUs;
  machine.read();
  CHECK_FALSE(machine.clock.confirm(3'600'000));  // not what the operator saw
  CHECK(machine.clock.confirm(2 * 3'600'000));
  CHECK(machine.read() == kNoon + 2 * 3'600'000);
  machine.readings.wall_us -= 3 * kHourUs;
  machine.read();
  CHECK(machine.clock.confirm(-3 * 3'600'000));
  CHECK(machine.clock.follows_wall());
  const Timestamp before = machine.read();
  machine.pass(64 * kSecondUs);
  CHECK(machine.read() == before + 63'000);
  for (int hour = 0; hour < 3 * 64; ++hour) {
    machine.pass(kHourUs);
    machine.read();
  }
  CHECK(machine.clock.offset_ms() == 0);
}

TEST_CASE("a server that starts believes a wall clock that is not behind its log nor too far ahead") {
  constexpr std::int64_t kWeekMs = 7 * 86'400'000;
  CHECK(begin_after({}, kNoon, kWeekMs) == kNoon);  // nothing is recorded
  CHECK(begin_after(kNoon, kNoon + kWeekMs, kWeekMs) == kNoon + kWeekMs);
  CHECK(begin_after(kNoon, kNoon + kWeekMs + 1, kWeekMs) == kNoon);
  CHECK(begin_after(kNoon, kNoon + -1000, kWeekMs) == kNoon);
  CHECK(begin_after(kNoon, kNoon + -kYearMs, kWeekMs) == kNoon);
}

TEST_CASE("a server that starts with a wrong wall clock goes on from its last event until that is confirmed") {
  for (const std::int64_t offset_ms : {std::int64_t{8 * 86'400'000}, -kYearMs}) {
    Machine machine;
    const Timestamp wall = kNoon;
    const Timestamp last = wall + -offset_ms;
    machine.clock = ClockDiscipline(machine.readings, begin_after(last, wall, 7 * 86'400'000), last);
    machine.pass(kSecondUs);
    CHECK(machine.read() == last + 1000);
    CHECK_FALSE(machine.clock.follows_wall());
    CHECK(machine.clock.offset_ms() == offset_ms);
    CHECK(machine.clock.confirm(offset_ms));
    CHECK(machine.read() == std::max(wall, last) + 1000);
  }
}

TEST_CASE("a clock that begins before the last event shows no time before it") {
  const ClockReadings first{0, kNoon.ms * 1000};
  ClockDiscipline clock(first, kNoon, kNoon + 60'000);
  CHECK(clock.read(first) == kNoon + 60'000);
  CHECK(clock.read({64 * kSecondUs, kNoon.ms * 1000 + 64 * kSecondUs}) == kNoon + 123'000);
}

}  // namespace
}  // namespace berth

#include "daemon/server_clock.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace berth::daemon {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kWeekMs = 7 * 24 * kHourMs;

struct Directory {
  std::string path;
  Directory() {
    char pattern[] = "/tmp/berth-clock-XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~Directory() { std::filesystem::remove_all(path); }
};

TEST_CASE("a server whose last event lies in the future goes on from it, does not stand still, and says so") {
  const Directory directory;
  ServerClock clock;
  const Timestamp recorded = clock.now() + kHourMs;
  clock.begin(directory.path, recorded, kWeekMs);
  const Timestamp first = clock.now();
  CHECK(first >= recorded);
  Timestamp later = first;
  while (later <= first + 20) later = clock.now();  // endless if the clock stops
  CHECK(later < recorded + kHourMs);
  const ServerClock::Status status = clock.status();
  CHECK_FALSE(status.follows_wall);
  CHECK(status.wall_offset_ms < -kHourMs + 60'000);
  CHECK(clock.confirm(status.wall_offset_ms));
  CHECK(clock.status().follows_wall);
}

TEST_CASE("a server that was down for longer than it is likely goes on from its last event") {
  const Directory directory;
  ServerClock clock;
  const Timestamp wall = clock.now();
  clock.begin(directory.path, wall + -kWeekMs + -kHourMs, kWeekMs);
  CHECK(clock.now() < wall + -kWeekMs);
  CHECK_FALSE(clock.status().follows_wall);
  const Directory other;
  clock.begin(other.path, wall + -kWeekMs + kHourMs, kWeekMs);
  CHECK(clock.now() >= wall);
  CHECK(clock.status().follows_wall);
}

TEST_CASE("a server that starts again before a reboot goes on with its time, not with the wall clock") {
  const Directory directory;
  ServerClock before;
  const Timestamp recorded = before.now() + 2 * kHourMs;  // as if the wall clock had been set back by two hours since
  before.begin(directory.path, recorded, kWeekMs);
  ServerClock after;
  after.begin(directory.path, {}, kWeekMs);
  CHECK(after.now() >= recorded);
  CHECK_FALSE(after.status().follows_wall);
  // The file of another boot counts for nothing.
  std::ofstream(directory.path + "/clock") << "another-boot 5\n";
  after.begin(directory.path, {}, kWeekMs);
  CHECK(after.status().follows_wall);
}

TEST_CASE("a test lets time pass by a file, which can only take it onwards") {
  const Directory directory;
  const std::string file = directory.path + "/test-clock";
  const auto set = [&](std::int64_t ms) { std::ofstream(file) << ms << '\n'; };
  ServerClock clock(file);
  const Timestamp first = clock.now();
  clock.begin(directory.path, first, kWeekMs);
  set(kHourMs);
  const Timestamp pushed = clock.now();
  CHECK(pushed >= first + kHourMs);
  CHECK(clock.status().follows_wall);  // both clocks are pushed: this is no step of the wall clock
  set(0);
  CHECK(clock.now() >= pushed);
  set(-kHourMs);
  CHECK(clock.now() >= pushed);
  set(kHourMs);
  ServerClock after(file);  // of the next server of that directory
  after.begin(directory.path, pushed, kWeekMs);
  CHECK(after.now() >= pushed);
  CHECK(after.status().follows_wall);
}

TEST_CASE("where the wall clock is, in words") {
  CHECK(offset_in_words(2 * kHourMs) == "2h ahead of");
  CHECK(offset_in_words(-90'000) == "1m30s behind");
  CHECK(offset_in_words(400) == "1s ahead of");
}

}  // namespace
}  // namespace berth::daemon

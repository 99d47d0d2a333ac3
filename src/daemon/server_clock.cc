#include "daemon/server_clock.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "executor/process.h"
#include "model/document/quantity.h"

namespace berth::daemon {

namespace {

constexpr std::int64_t kSaveAgainUs = 1'000'000;  // the file is written again after the time was slewed by so much

std::int64_t microseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

// For tests: BERTH_WALL_CLOCK_FILE names a file with the milliseconds by which the wall clock is wrong.
std::int64_t injected_step_us() {
  static const char* const path = std::getenv("BERTH_WALL_CLOCK_FILE");
  std::int64_t step_ms = 0;
  if (path != nullptr) std::ifstream(path) >> step_ms;
  return step_ms * 1000;
}

ClockDiscipline begun_at(ClockReadings first) { return ClockDiscipline(first, {first.wall_us / 1000}); }

}  // namespace

std::string offset_in_words(std::int64_t offset_ms) {
  const std::int64_t seconds = std::max<std::int64_t>(1, std::abs(offset_ms) / 1000);
  return document::duration_text(seconds) + (offset_ms < 0 ? " behind" : " ahead of");
}

ServerClock::ServerClock(std::string test_clock)
    : test_clock_(std::move(test_clock)), discipline_(begun_at(read_clocks())) {}

void ServerClock::begin(const std::string& data_dir, Timestamp last_event, std::int64_t max_downtime_ms) {
  const std::lock_guard lock(mutex_);
  file_ = data_dir + "/clock";
  const ClockReadings first = read_clocks();
  const Timestamp wall{first.wall_us / 1000};
  std::string boot;
  std::int64_t ahead_us = 0;
  const bool same_boot = static_cast<bool>(std::ifstream(file_) >> boot >> ahead_us) && boot == executor::boot_id();
  const Timestamp begin =
      same_boot ? Timestamp{(first.boot_us + ahead_us) / 1000} : begin_after(last_event, wall, max_downtime_ms);
  discipline_ = ClockDiscipline(first, begin, last_event);
  saved_ahead_us_.reset();
  read();
}

Timestamp ServerClock::now() {
  const std::lock_guard lock(mutex_);
  return read();
}

ServerClock::Status ServerClock::status() {
  const std::lock_guard lock(mutex_);
  const Timestamp time = read();
  return {time, discipline_.offset_ms(), discipline_.follows_wall()};
}

bool ServerClock::confirm(std::int64_t offset_ms) {
  const std::lock_guard lock(mutex_);
  read();
  const bool confirmed = discipline_.confirm(offset_ms);
  read();
  return confirmed;
}

ClockReadings ServerClock::read_clocks() {
  std::int64_t pushed_ms = 0;
  if (!test_clock_.empty() && std::ifstream(test_clock_) >> pushed_ms)
    pushed_us_ = std::max(pushed_us_, pushed_ms * 1000);
  return {microseconds(CLOCK_BOOTTIME) + pushed_us_, microseconds(CLOCK_REALTIME) + pushed_us_ + injected_step_us()};
}

Timestamp ServerClock::read() {
  const Timestamp time = discipline_.read(read_clocks());
  tell_changes();
  if (!saved_ahead_us_ || std::abs(*saved_ahead_us_ - discipline_.ahead_us()) > kSaveAgainUs) save();
  return time;
}

void ServerClock::tell_changes() {
  const bool unfollowed = !discipline_.follows_wall();
  if (unfollowed == told_unfollowed_) return;
  told_unfollowed_ = unfollowed;
  if (unfollowed) {
    spdlog::warn(
        "the wall clock is {} the server's clock and is not followed: no time limit, bill or deletion comes of it. Set "
        "it right; or, if it is right, say so: berth clock confirm",
        offset_in_words(discipline_.offset_ms()));
  } else {
    spdlog::info("the server's clock follows the wall clock again");
  }
}

// A file that cannot be written costs no more than what it is for, so it is no error. Power loss ends the boot that it
// is about, so it is not synced.
void ServerClock::save() {
  saved_ahead_us_ = discipline_.ahead_us();
  if (file_.empty()) return;
  const std::string fresh = file_ + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << executor::boot_id() << ' ' << *saved_ahead_us_ << '\n';
  out.close();
  if (!out || std::rename(fresh.c_str(), file_.c_str()) != 0) spdlog::warn("cannot write {}", file_);
}

}  // namespace berth::daemon

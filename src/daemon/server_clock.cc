#include "daemon/server_clock.h"

#include <algorithm>
#include <chrono>

namespace berth::daemon {

namespace {

template <class Source>
std::int64_t microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Source::now().time_since_epoch()).count();
}

}  // namespace

ServerClock::ServerClock() : steady_us_(microseconds<std::chrono::steady_clock>()) {}

Timestamp ServerClock::now() {
  const std::lock_guard lock(mutex_);
  const std::int64_t steady_us = microseconds<std::chrono::steady_clock>();
  last_us_ = shown_after(last_us_, steady_us - steady_us_, microseconds<std::chrono::system_clock>());
  steady_us_ = steady_us;
  return {last_us_ / 1000};
}

void ServerClock::not_before(Timestamp time) {
  const std::lock_guard lock(mutex_);
  last_us_ = std::max(last_us_, time.ms * 1000);
}

}  // namespace berth::daemon

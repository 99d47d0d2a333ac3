#include "base/clock_discipline.h"

#include <algorithm>
#include <cstdlib>

#include "base/planted.h"

namespace berth {

ClockDiscipline::ClockDiscipline(ClockReadings first, Timestamp begin, Timestamp not_before)
    : last_(first),
      believed_ahead_us_(begin.ms * 1000 - first.boot_us),
      shown_us_(std::max(begin, not_before).ms * 1000) {}

bool ClockDiscipline::follows_wall() const { return std::abs(wall_ahead_us()) <= kSmallUs; }

Timestamp ClockDiscipline::read(ClockReadings readings) {
  const std::int64_t elapsed_us = std::max<std::int64_t>(0, readings.boot_us - last_.boot_us);
  last_.boot_us += elapsed_us;
  last_.wall_us = readings.wall_us;
  const std::int64_t most_us = elapsed_us / kSlewDivisor;
  if (planted(Bug::kClockBelieved)) {
    believed_ahead_us_ += wall_ahead_us();
  } else if (follows_wall()) {
    believed_ahead_us_ += std::clamp(wall_ahead_us(), -most_us, most_us);
  }
  const std::int64_t slowed_us = shown_us_ + elapsed_us - elapsed_us / kSlowDivisor;
  shown_us_ = std::max(slowed_us, last_.boot_us + believed_ahead_us_);
  return {shown_us_ / 1000};
}

bool ClockDiscipline::confirm(std::int64_t offset_ms) {
  const std::int64_t differs_us = last_.wall_us - shown_us_ - offset_ms * 1000;
  if (std::abs(differs_us) > kSmallUs) return false;
  believed_ahead_us_ += wall_ahead_us();
  return true;
}

Timestamp begin_after(Timestamp last_event, Timestamp wall, std::int64_t max_downtime_ms) {
  if (last_event.ms == 0) return wall;
  const std::int64_t ahead_ms = wall - last_event;
  const bool believed = ahead_ms >= -ClockDiscipline::kSmallUs / 1000 && ahead_ms <= max_downtime_ms;
  return believed ? std::max(wall, last_event) : last_event;
}

}  // namespace berth

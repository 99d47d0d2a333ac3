#include "model/off_peak.h"

#include <algorithm>

#include "base/check.h"

namespace berth {
namespace {

constexpr std::int64_t kClockMinuteMs = 60'000;
constexpr std::int64_t kClockDayMs = kDayMinutes * kClockMinuteMs;

std::int64_t clock_day_of(std::int64_t ms) {
  return ms >= 0 ? ms / kClockDayMs : -((-ms + kClockDayMs - 1) / kClockDayMs);
}

Weekday weekday_of(std::int64_t day) {  // 1970-01-01 was a Thursday
  return static_cast<Weekday>(((day + 3) % 7 + 7) % 7);
}

bool begins_on(const OffPeak& window, std::int64_t day) {
  return window.days.empty() || std::find(window.days.begin(), window.days.end(), weekday_of(day)) != window.days.end();
}

std::int64_t length_ms(const OffPeak& window) {
  const std::int64_t minutes = window.to_min - window.from_min;
  return (minutes > 0 ? minutes : minutes + kDayMinutes) * kClockMinuteMs;
}

std::int64_t offset_ms_at(const TimeZone& zone, Timestamp time) {
  BERTH_CHECK(!zone.changes.empty());
  const auto after = std::find_if(zone.changes.begin(), zone.changes.end(),
                                  [&](const ClockChange& change) { return change.from > time; });
  return (after == zone.changes.begin() ? after->offset_s : std::prev(after)->offset_s) * 1000;
}

void add_span(std::vector<TimeSpan>& spans, Timestamp begin, Timestamp end) {
  if (end <= begin) return;
  if (!spans.empty() && spans.back().end == begin)
    spans.back().end = end;
  else
    spans.push_back({begin, end});
}

}  // namespace

bool lies_in(const OffPeak& window, const TimeZone& zone, Timestamp time) {
  const std::int64_t shown = time.ms + offset_ms_at(zone, time);
  const std::int64_t today = clock_day_of(shown);
  for (const std::int64_t day : {today - 1, today}) {
    const std::int64_t begin = day * kClockDayMs + window.from_min * kClockMinuteMs;
    if (begins_on(window, day) && shown >= begin && shown < begin + length_ms(window)) return true;
  }
  return false;
}

// Between two changes of the clock, the clock is UTC plus an offset.
std::vector<TimeSpan> spans_of(const OffPeak& window, const TimeZone& zone, Timestamp from, Timestamp to) {
  std::vector<TimeSpan> spans;
  for (Timestamp at = from; at < to;) {
    const auto next = std::find_if(zone.changes.begin(), zone.changes.end(),
                                   [&](const ClockChange& change) { return change.from > at; });
    const Timestamp until = next == zone.changes.end() ? to : std::min(to, next->from);
    const std::int64_t offset = offset_ms_at(zone, at);
    for (std::int64_t day = clock_day_of(at.ms + offset) - 1; day * kClockDayMs - offset < until.ms; ++day) {
      if (!begins_on(window, day)) continue;
      const Timestamp begin{day * kClockDayMs + window.from_min * kClockMinuteMs - offset};
      add_span(spans, std::max(at, begin), std::min(until, begin + length_ms(window)));
    }
    at = until;
  }
  return spans;
}

std::string clock_time(std::int64_t minutes) {
  const auto two_digits = [](std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return two_digits(minutes / 60) + ":" + two_digits(minutes % 60);
}

}  // namespace berth

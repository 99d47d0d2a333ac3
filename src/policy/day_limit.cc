#include "policy/day_limit.h"

#include <algorithm>

namespace berth::policy {

namespace {

constexpr std::int64_t kDayMs = 86'400'000;

std::int64_t day_number(Timestamp now) { return now.ms / kDayMs; }

}  // namespace

DayLimit::Day& DayLimit::day_of(std::string_view subject, Timestamp now) {
  const std::int64_t today = day_number(now);
  Day* day = subjects_.find(subject);
  if (day == nullptr && subjects_.full() && subjects_.oldest().number < today) subjects_.drop_oldest();
  if (day == nullptr) day = subjects_.full() ? &shared_ : &subjects_.add(subject, {});
  if (day->number < today) *day = {today, 0, false};  // a clock that goes back gives nothing
  return *day;
}

DayLimit::Taken DayLimit::take(std::string_view subject, std::uint64_t bytes, Timestamp now) {
  if (limit_ == 0) return {};
  Day& day = day_of(subject, now);
  Taken taken{.used_bytes = day.bytes};
  if (day.bytes <= limit_ && bytes <= limit_ - day.bytes) {
    day.bytes += bytes;
    return taken;
  }
  taken.ok = false;
  taken.first_refusal = !day.was_refused;
  day.was_refused = true;
  return taken;
}

void DayLimit::give_back(std::string_view subject, std::uint64_t bytes, Timestamp now) {
  if (limit_ == 0) return;
  Day& day = day_of(subject, now);
  day.bytes -= std::min(day.bytes, bytes);
}

}  // namespace berth::policy

#include "base/timestamp.h"

#include <array>
#include <cstdio>

namespace berth {
namespace {

struct CivilDate {
  std::int64_t year;
  unsigned month;
  unsigned day;
};

// Days since 1970-01-01 to a civil date; Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
// civil_from_days.
CivilDate civil_from_days(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto day_of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted_month = (5 * day_of_year + 2) / 153;
  const unsigned month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return {static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2 ? 1 : 0), month,
          day_of_year - (153 * shifted_month + 2) / 5 + 1};
}

}  // namespace

std::string to_iso8601(Timestamp time) {
  if (time.is_never()) return "never";
  constexpr std::int64_t kDayMs = 86'400'000;
  std::int64_t days = time.ms / kDayMs;
  std::int64_t in_day = time.ms % kDayMs;
  if (in_day < 0) {
    in_day += kDayMs;
    --days;
  }
  const CivilDate date = civil_from_days(days);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04lld-%02u-%02uT%02lld:%02lld:%02lld.%03lldZ",
                static_cast<long long>(date.year), date.month, date.day, static_cast<long long>(in_day / 3'600'000),
                static_cast<long long>(in_day / 60'000 % 60), static_cast<long long>(in_day / 1000 % 60),
                static_cast<long long>(in_day % 1000));
  return text.data();
}

}  // namespace berth

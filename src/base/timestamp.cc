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

// Returns the date for a number of days since 1970-01-01. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
// Algorithms", civil_from_days.
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

// Returns the days since 1970-01-01 for a date. Same source, days_from_civil.
std::int64_t days_from_civil(const CivilDate& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (date.month > 2 ? date.month - 3 : date.month + 9) + 2) / 5 + date.day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<std::int64_t>(day_of_era) - 719468;
}

// Removes what it can read from the front of the text.
class IsoReader {
 public:
  explicit IsoReader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  bool take(char expected) {
    if (text_.empty() || text_.front() != expected) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Returns the number of exactly `digits` digits, within [low, high].
  std::optional<unsigned> number(std::size_t digits, unsigned low, unsigned high) {
    if (text_.size() < digits) return std::nullopt;
    unsigned value = 0;
    for (const char c : text_.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    text_.remove_prefix(digits);
    if (value < low || value > high) return std::nullopt;
    return value;
  }
  // Returns the decimals after the point as milliseconds.
  std::optional<unsigned> decimals() {
    std::size_t length = 0;
    unsigned ms = 0;
    while (length < text_.size() && text_[length] >= '0' && text_[length] <= '9') {
      if (length < 3) ms = ms * 10 + static_cast<unsigned>(text_[length] - '0');
      ++length;
    }
    if (length == 0 || length > 9) return std::nullopt;
    for (std::size_t i = length; i < 3; ++i) ms *= 10;
    text_.remove_prefix(length);
    return ms;
  }

 private:
  std::string_view text_;
};

std::optional<std::int64_t> date_ms(IsoReader& reader) {
  const auto year = reader.number(4, 1, 9999);
  if (!year || !reader.take('-')) return std::nullopt;
  const auto month = reader.number(2, 1, 12);
  if (!month || !reader.take('-')) return std::nullopt;
  const auto day = reader.number(2, 1, 31);
  if (!day) return std::nullopt;
  const std::int64_t days = days_from_civil({*year, *month, *day});
  if (civil_from_days(days).day != *day) return std::nullopt;  // 31 April is 1 May
  return days * 86'400'000;
}

std::optional<std::int64_t> time_of_day_ms(IsoReader& reader) {
  const auto hour = reader.number(2, 0, 23);
  if (!hour || !reader.take(':')) return std::nullopt;
  const auto minute = reader.number(2, 0, 59);
  if (!minute) return std::nullopt;
  std::int64_t ms = (*hour * 60LL + *minute) * 60'000;
  if (!reader.take(':')) return ms;
  const auto second = reader.number(2, 0, 59);
  if (!second) return std::nullopt;
  ms += *second * 1000LL;
  if (reader.take('.')) {
    const auto decimals = reader.decimals();
    if (!decimals) return std::nullopt;
    ms += *decimals;
  }
  return ms;
}

// Returns by how much the zone of the text is ahead of UTC.
std::optional<std::int64_t> offset_ms(IsoReader& reader) {
  if (reader.take('Z')) return 0;
  const bool ahead = reader.take('+');
  if (!ahead && !reader.take('-')) return std::nullopt;
  const auto hour = reader.number(2, 0, 23);
  if (!hour || !reader.take(':')) return std::nullopt;
  const auto minute = reader.number(2, 0, 59);
  if (!minute) return std::nullopt;
  return (*hour * 60LL + *minute) * (ahead ? 60'000 : -60'000);
}

}  // namespace

std::optional<Timestamp> from_iso8601(std::string_view text) {
  if (text == "never") return Timestamp::never();
  IsoReader reader(text);
  const auto date = date_ms(reader);
  if (!date) return std::nullopt;
  if (reader.at_end()) return Timestamp{*date};
  if (!reader.take('T')) return std::nullopt;
  const auto time = time_of_day_ms(reader);
  if (!time) return std::nullopt;
  const auto offset = offset_ms(reader);
  if (!offset || !reader.at_end()) return std::nullopt;
  return Timestamp{*date + *time - *offset};
}

std::string leap_second_note(std::string_view text) {
  constexpr std::size_t kSeconds = 17;  // in 2016-12-31T23:59:60
  if (text.size() < kSeconds + 2 || text.substr(kSeconds - 1, 3) != ":60") return {};
  std::string before(text);
  before.replace(kSeconds, 2, "59");
  if (!from_iso8601(before)) return {};
  return "; leap seconds are not counted, so give " + before + " or the second after it";
}

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

#include "sim/trace/fields.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/checked.h"

namespace berth::sim {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

std::optional<std::int64_t> digits_value(std::string_view text) {
  if (!all_digits(text)) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    const auto shifted = try_multiply(value, 10);
    const auto next = shifted ? try_add(*shifted, c - '0') : std::nullopt;
    if (!next) return std::nullopt;
    value = *next;
  }
  return value;
}

// Days since 1970-01-01 of a civil date; Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
// days_from_civil.
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = year / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

std::int64_t days_in_month(std::int64_t year, std::int64_t month) {
  constexpr std::array<std::int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kDays[static_cast<std::size_t>(month - 1)] + (leap && month == 2 ? 1 : 0);
}

// "HH:MM:SS" with hours up to `max_hours`.
std::optional<std::int64_t> clock_ms(std::string_view text, std::int64_t max_hours) {
  if (text.size() != 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hours = digits_value(text.substr(0, 2));
  const auto minutes = digits_value(text.substr(3, 2));
  const auto seconds = digits_value(text.substr(6, 2));
  if (!hours || !minutes || !seconds || *hours > max_hours || *minutes > 59 || *seconds > 59) return std::nullopt;
  return ((*hours * 60 + *minutes) * 60 + *seconds) * 1000;
}

// How many continuation bytes follow this lead byte, and the least code point that needs so many.
struct Utf8Lead {
  int following;
  std::uint32_t bits;
  std::uint32_t least;
};
std::optional<Utf8Lead> utf8_lead(unsigned char byte) {
  if (byte < 0x80U) return Utf8Lead{0, byte, 0};
  if (byte >= 0xc2U && byte < 0xe0U) return Utf8Lead{1, byte & 0x1fU, 0x80};
  if (byte >= 0xe0U && byte < 0xf0U) return Utf8Lead{2, byte & 0x0fU, 0x800};
  if (byte >= 0xf0U && byte < 0xf5U) return Utf8Lead{3, byte & 0x07U, 0x10000};
  return std::nullopt;
}

// Consumes one code point; nullopt if the bytes are not UTF-8 (overlong forms and surrogates are not).
std::optional<std::uint32_t> next_code_point(std::string_view& text) {
  const auto lead = utf8_lead(static_cast<unsigned char>(text.front()));
  if (!lead || text.size() <= static_cast<std::size_t>(lead->following)) return std::nullopt;
  std::uint32_t code = lead->bits;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(lead->following); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80U) return std::nullopt;
    code = (code << 6U) | (byte & 0x3fU);
  }
  text.remove_prefix(static_cast<std::size_t>(lead->following) + 1);
  if (code < lead->least || code > 0x10ffffU || (code >= 0xd800U && code < 0xe000U)) return std::nullopt;
  return code;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_whole(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point != std::string_view::npos) {
    const std::string_view fraction = text.substr(point + 1);
    if (fraction.empty() || fraction.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
    text = text.substr(0, point);
  }
  return digits_value(text);
}

std::optional<std::int64_t> parse_thousandths(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole_text = text.substr(0, point);
  const std::string_view fraction = point == std::string_view::npos ? "0" : text.substr(point + 1);
  if (whole_text.size() > 15 || !all_digits(whole_text) || !all_digits(fraction)) return std::nullopt;
  std::int64_t value = *digits_value(whole_text) * 1000;
  std::int64_t unit = 100;
  for (std::size_t i = 0; i < fraction.size() && i < 3; ++i, unit /= 10) value += (fraction[i] - '0') * unit;
  if (fraction.size() > 3 && fraction[3] >= '5') ++value;
  return value;
}

std::optional<std::int64_t> parse_date_ms(std::string_view text) {
  if (text.size() != 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T'))
    return std::nullopt;
  const auto year = digits_value(text.substr(0, 4));
  const auto month = digits_value(text.substr(5, 2));
  const auto day = digits_value(text.substr(8, 2));
  const auto time = clock_ms(text.substr(11), 23);
  if (!year || !month || !day || !time || *month < 1 || *month > 12 || *day < 1) return std::nullopt;
  if (*day > days_in_month(*year, *month)) return std::nullopt;
  return days_from_civil(*year, *month, *day) * 86'400'000 + *time;
}

std::optional<std::int64_t> parse_elapsed_ms(std::string_view text) {
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto parsed = digits_value(text.substr(0, dash));
    if (!parsed || *parsed > 36'500) return std::nullopt;
    days = *parsed;
    text = text.substr(dash + 1);
  }
  std::optional<std::int64_t> in_day;
  if (text.size() == 5) {
    constexpr std::string_view kNoHours = "00:";
    in_day = clock_ms(std::string(kNoHours).append(text), 0);
  } else {
    in_day = clock_ms(text, 99);
  }
  if (!in_day) return std::nullopt;
  return days * 86'400'000 + *in_day;
}

std::optional<std::int64_t> parse_mebibytes(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t per_unit_kib = 1024;
  switch (text.back()) {
    case 'K':
      per_unit_kib = 1;
      break;
    case 'M':
      break;
    case 'G':
      per_unit_kib = std::int64_t{1} << 20U;
      break;
    case 'T':
      per_unit_kib = std::int64_t{1} << 30U;
      break;
    case 'P':
      per_unit_kib = std::int64_t{1} << 40U;
      break;
    case 'E':
      per_unit_kib = std::int64_t{1} << 50U;
      break;
    default:
      per_unit_kib = 0;
  }
  if (per_unit_kib == 0) {
    per_unit_kib = 1024;
  } else {
    text.remove_suffix(1);
  }
  const auto thousandths = parse_thousandths(text);
  const auto kib_thousandths = thousandths ? try_multiply(*thousandths, per_unit_kib) : std::nullopt;
  if (!kib_thousandths) return std::nullopt;
  constexpr std::int64_t kPerMebibyte = std::int64_t{1024} * 1000;
  return *kib_thousandths / kPerMebibyte + (*kib_thousandths % kPerMebibyte == 0 ? 0 : 1);
}

bool is_sound_name(std::string_view text) {
  if (text.size() > 256) return false;
  while (!text.empty()) {
    const auto code = next_code_point(text);
    if (!code || *code < 0x20U || (*code >= 0x7fU && *code < 0xa0U)) return false;
  }
  return true;
}

std::string with_valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    std::string_view rest = text;
    if (next_code_point(rest)) {
      valid.append(text.substr(0, text.size() - rest.size()));
      text = rest;
    } else {
      valid.append("\xef\xbf\xbd");
      text.remove_prefix(1);
    }
  }
  return valid;
}

}  // namespace berth::sim

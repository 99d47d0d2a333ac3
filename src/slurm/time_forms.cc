#include "slurm/time_forms.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "slurm/letter_case.h"

namespace berth::slurm {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// The numbers between colons, one to three of them.
std::optional<std::vector<std::int64_t>> between_colons(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (true) {
    const std::size_t colon = text.find(':');
    const auto number = number_of(text.substr(0, colon));
    if (!number || numbers.size() == 3) return std::nullopt;
    numbers.push_back(*number);
    if (colon == std::string_view::npos) return numbers;
    text.remove_prefix(colon + 1);
  }
}

std::tm local_parts(Timestamp time) {
  const std::time_t seconds = time.ms / 1000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

Timestamp from_parts(std::tm parts) {
  parts.tm_isdst = -1;
  return {static_cast<std::int64_t>(::mktime(&parts)) * 1000};
}

void set_clock(std::tm& parts, std::int64_t hour, std::int64_t minute, std::int64_t second) {
  parts.tm_hour = static_cast<int>(hour);
  parts.tm_min = static_cast<int>(minute);
  parts.tm_sec = static_cast<int>(second);
}

// "16:00", "4:30pm", "4pm", "noon".
std::optional<std::array<std::int64_t, 3>> clock_of(const std::string& text) {
  if (text == "midnight") return std::array<std::int64_t, 3>{0, 0, 0};
  if (text == "noon") return std::array<std::int64_t, 3>{12, 0, 0};
  if (text == "fika") return std::array<std::int64_t, 3>{15, 0, 0};
  if (text == "teatime") return std::array<std::int64_t, 3>{16, 0, 0};
  std::string_view rest = text;
  const bool morning = rest.ends_with("am");
  const bool evening = rest.ends_with("pm");
  if (morning || evening) rest.remove_suffix(2);
  auto numbers = between_colons(rest);
  if (!numbers || (numbers->size() < 2 && !morning && !evening)) return std::nullopt;
  numbers->resize(3, 0);
  std::int64_t hour = numbers->front();
  if (morning || evening) {
    if (hour < 1 || hour > 12) return std::nullopt;
    hour = hour % 12 + (evening ? 12 : 0);
  }
  if (hour > 23 || numbers->at(1) > 59 || numbers->at(2) > 59) return std::nullopt;
  return std::array<std::int64_t, 3>{hour, numbers->at(1), numbers->at(2)};
}

std::optional<Timestamp> after_now(const std::string& text, Timestamp now) {
  std::string_view rest = std::string_view(text).substr(3);
  if (rest.empty()) return now;
  if (rest.front() != '+' && rest.front() != '-') return std::nullopt;
  const bool before = rest.front() == '-';
  rest.remove_prefix(1);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto count = number_of(rest.substr(0, digits));
  if (!count) return std::nullopt;
  const std::string_view unit = rest.substr(digits);
  struct Unit {
    std::string_view name;
    std::int64_t seconds;
  };
  constexpr std::array kUnits{Unit{"seconds", 1}, Unit{"minutes", 60}, Unit{"hours", 3600}, Unit{"days", 86'400},
                              Unit{"weeks", 604'800}};
  for (const Unit& one : kUnits) {
    if (unit.empty() || one.name == unit || one.name.substr(0, one.name.size() - 1) == unit)
      return Timestamp{now.ms + (before ? -1 : 1) * *count * one.seconds * 1000};
  }
  return std::nullopt;
}

// "01/20", "01.20.27", "0120", "012027" with slashes: "01/20", "01/20/27".
std::string with_slashes(std::string text) {
  std::replace(text.begin(), text.end(), '.', '/');
  const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && text.size() == 6) text.insert(4, "/");
  if (is_number && text.size() >= 4) text.insert(2, "/");
  return text;
}

// "2027-01-20", "01/20", "01/20/27", "012027". A date without a year is the next one, or the last one if it looks back.
std::optional<std::tm> date_of(const std::string& given, Timestamp now, Look look) {
  const std::string text = with_slashes(given);
  std::tm parts = local_parts(now);
  const auto today = std::pair(parts.tm_mon, parts.tm_mday);
  set_clock(parts, 0, 0, 0);
  int year = 0;
  int month = 0;
  int day = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%c", &year, &month, &day, &rest) == 3) {
    parts.tm_year = year - 1900;
  } else if (std::sscanf(text.c_str(), "%2d/%2d/%2d%c", &month, &day, &year, &rest) == 3) {
    parts.tm_year = year + 100;
  } else if (std::sscanf(text.c_str(), "%2d/%2d%c", &month, &day, &rest) == 2) {
    const auto date = std::pair(month - 1, day);
    if (look == Look::kAhead && date < today) ++parts.tm_year;
    if (look == Look::kBack && today < date) --parts.tm_year;
  } else {
    return std::nullopt;
  }
  if (month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  parts.tm_mon = month - 1;
  parts.tm_mday = day;
  return parts;
}

}  // namespace

std::optional<std::int64_t> limit_minutes(std::string_view text) {
  const std::string word = lower_case(text);
  if (word == "unlimited" || word == "infinite" || word == "-1") return kUnlimited;
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto number = number_of(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  auto numbers = between_colons(text);
  if (!numbers) return std::nullopt;
  std::int64_t seconds = days * 86'400;
  if (dash != std::string_view::npos || numbers->size() == 3) {
    numbers->resize(3, 0);
    seconds += numbers->at(0) * 3600 + numbers->at(1) * 60 + numbers->at(2);
  } else {
    numbers->resize(2, 0);
    seconds += numbers->at(0) * 60 + numbers->at(1);
  }
  return seconds == 0 ? kUnlimited : (seconds + 59) / 60;
}

std::string short_span(std::int64_t seconds) {
  if (seconds < 0) return "INVALID";
  std::array<char, 64> text{};
  const long long days = seconds / 86'400;
  const long long hours = seconds / 3600 % 24;
  const long long minutes = seconds / 60 % 60;
  const long long rest = seconds % 60;
  if (days > 0) {
    std::snprintf(text.data(), text.size(), "%lld-%02lld:%02lld:%02lld", days, hours, minutes, rest);
  } else if (hours > 0) {
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", hours, minutes, rest);
  } else {
    std::snprintf(text.data(), text.size(), "%lld:%02lld", minutes, rest);
  }
  return text.data();
}

std::string long_span(std::int64_t seconds) {
  if (seconds < 0) return "INVALID";
  std::array<char, 64> text{};
  const long long days = seconds / 86'400;
  std::snprintf(text.data(), text.size(), "%02lld:%02lld:%02lld", static_cast<long long>(seconds / 3600 % 24),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  return (days > 0 ? std::to_string(days) + "-" : "") + text.data();
}

std::string local_time(Timestamp time) {
  const std::tm parts = local_parts(time);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return text.data();
}

std::string date_line(Timestamp time) {
  const std::tm parts = local_parts(time);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y", &parts);
  return text.data();
}

std::optional<Timestamp> instant(std::string_view given, Timestamp now, Look look) {
  const std::string text = lower_case(given);
  if (text.starts_with("now")) return after_now(text, now);
  if (const auto clock = clock_of(text)) {
    std::tm parts = local_parts(now);
    set_clock(parts, (*clock)[0], (*clock)[1], (*clock)[2]);
    if (look == Look::kAhead && from_parts(parts) < now) ++parts.tm_mday;
    return from_parts(parts);
  }
  if (text == "today" || text == "tomorrow") {
    std::tm parts = local_parts(now);
    set_clock(parts, 0, 0, 0);
    if (text == "tomorrow") ++parts.tm_mday;
    return from_parts(parts);
  }
  const bool is_iso = text.size() > 7 && text[4] == '-' && text[7] == '-';
  const std::size_t mark = text.find('t') != std::string::npos ? text.find('t') : text.find('-', is_iso ? 8 : 0);
  auto parts = date_of(text.substr(0, mark), now, look);
  if (!parts) return std::nullopt;
  if (mark != std::string::npos) {
    const auto clock = clock_of(text.substr(mark + 1));
    if (!clock) return std::nullopt;
    set_clock(*parts, (*clock)[0], (*clock)[1], (*clock)[2]);
  }
  return from_parts(*parts);
}

}  // namespace berth::slurm

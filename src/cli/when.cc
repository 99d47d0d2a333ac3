#include "cli/when.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "model/document/quantity.h"

namespace berth::cli {

Timestamp clock_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

namespace {

// The next word of the text, which it takes out.
std::string_view take_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

// "2h", "3 days", "90 minutes": in seconds.
std::optional<std::int64_t> span_s(std::string_view text) {
  if (const auto seconds = document::parse_duration_s(text)) return *seconds;
  const std::string_view number = take_word(text);
  const auto amount = document::parse_integer(number, 0, 1'000'000);
  if (!amount) return std::nullopt;
  if (text.ends_with('s')) text.remove_suffix(1);
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86'400}, {"week", 7 * 86'400}};
  for (const auto& [unit, seconds] : kUnits) {
    if (text == unit) return *amount * seconds;
  }
  return std::nullopt;
}

// "18:00" or "18:00:30": seconds since midnight.
std::optional<int> time_of_day_s(std::string_view text) {
  int total = 0;
  int parts = 0;
  for (const int most : {23, 59, 59}) {
    if (text.empty() && parts >= 2) break;
    const std::string_view part = text.substr(0, text.find(':'));
    if (part.empty() || part.size() > 2 || part.find_first_not_of("0123456789") != std::string_view::npos)
      return std::nullopt;
    const int number = part.size() == 2 ? (part[0] - '0') * 10 + (part[1] - '0') : part[0] - '0';
    if (number > most) return std::nullopt;
    total = total * 60 + number;
    ++parts;
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  if (!text.empty() || parts < 2) return std::nullopt;
  return parts == 2 ? total * 60 : total;
}

// A day and a time of day as the clocks of the reader's zone show it.
struct WallTime {
  std::int64_t day = 0;  // since 1970-01-01
  int second = 0;
  std::int64_t as_utc_s() const { return day * 86'400 + second; }
};

std::tm local_clock(std::int64_t second) {
  const std::time_t at = second;
  std::tm local{};
  ::localtime_r(&at, &local);
  return local;
}

std::int64_t shown_at(std::int64_t second) { return second + local_clock(second).tm_gmtoff; }

// The seconds at which the clocks show the time: one, none where they skip it, two where they show it twice.
std::vector<std::int64_t> seconds_of(const WallTime& time) {
  const std::int64_t utc = time.as_utc_s();
  std::vector<std::int64_t> seconds;
  for (const std::int64_t around : {utc - 86'400, utc + 86'400}) {
    const std::int64_t second = utc - local_clock(around).tm_gmtoff;
    const bool known = std::find(seconds.begin(), seconds.end(), second) != seconds.end();
    if (!known && shown_at(second) == utc) seconds.push_back(second);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

std::string both_ways(std::int64_t second) {
  const std::string iso = to_iso8601(Timestamp{second * 1000});
  return iso + " (" + clock_text(iso) + ")";
}

// A day that is named without a time of day begins at midnight, or where its clocks first show it.
Result<Timestamp> instant_of(const WallTime& time, bool whole_day, std::string_view text) {
  const std::vector<std::int64_t> seconds = seconds_of(time);
  if (seconds.size() == 1 || (whole_day && !seconds.empty())) return Timestamp{seconds.front() * 1000};
  const std::string shown = "'" + std::string(text.substr(0, 80)) + "': ";
  if (!seconds.empty())
    return invalid(shown + "the clocks of this zone show that time twice; give " + both_ways(seconds.front()) + " or " +
                   both_ways(seconds.back()));
  // The clocks go on from here: where they skip the time, it is shown later by as much as they skip.
  const std::int64_t later = time.as_utc_s() - local_clock(time.as_utc_s() - 86'400).tm_gmtoff;
  if (whole_day) return Timestamp{later * 1000};
  return invalid(shown + "the clocks of this zone skip that time; give another, such as " + both_ways(later));
}

WallTime wall_time(Timestamp now, int days, int second_of_day) {
  const std::int64_t shown = shown_at(now.ms / 1000);
  return {shown / 86'400 + days, second_of_day};
}

// "yesterday 18:00", "18:00", "2026-11-21 18:00", in the reader's zone.
std::optional<Result<Timestamp>> day_and_time(std::string_view text, Timestamp now) {
  if (const auto second = time_of_day_s(text)) return instant_of(wall_time(now, 0, *second), false, text);
  std::string_view rest = text;
  const std::string_view word = take_word(rest);
  const auto second = rest.empty() ? std::optional(0) : time_of_day_s(rest);
  if (!second) return std::nullopt;
  constexpr std::pair<std::string_view, int> kDays[] = {{"yesterday", -1}, {"today", 0}, {"tomorrow", 1}};
  for (const auto& [day, days] : kDays) {
    if (word == day) return instant_of(wall_time(now, days, *second), rest.empty(), text);
  }
  const auto date = word.size() == 10 && !rest.empty() ? from_iso8601(word) : std::nullopt;
  if (!date || date->is_never()) return std::nullopt;
  return instant_of({date->ms / 86'400'000, *second}, false, text);
}

}  // namespace

Result<Timestamp> parse_when(std::string_view text, Timestamp now) {
  if (text == "now") return now;
  if (text.starts_with('-')) {
    const auto seconds = document::parse_duration_s(text.substr(1));
    if (seconds && *seconds <= now.ms / 1000) return Timestamp{now.ms - *seconds * 1000};
  } else if (text.starts_with('+')) {
    const auto seconds = document::parse_duration_s(text.substr(1));
    if (seconds) return now + *seconds * 1000;
  } else if (text.ends_with(" ago")) {
    const auto seconds = span_s(text.substr(0, text.size() - 4));
    if (seconds && *seconds <= now.ms / 1000) return Timestamp{now.ms - *seconds * 1000};
  } else if (text.starts_with("in ")) {
    if (const auto seconds = span_s(text.substr(3))) return now + *seconds * 1000;
  } else if (const auto time = from_iso8601(text); time && !time->is_never()) {
    return *time;
  } else if (auto local = day_and_time(text, now)) {
    return *std::move(local);
  }
  return invalid(
      "'" + std::string(text.substr(0, 80)) +
      "' is not a time; give one such as 2026-11-21T08:15:30Z, 2026-11-21, yesterday 18:00, 2h ago, -24h, +2h "
      "or now" +
      leap_second_note(text));
}

Result<std::string> iso_when(const std::string& text, Timestamp now) {
  if (text.empty()) return std::string();
  const auto time = parse_when(text, now);
  if (!time) return time.error();
  return to_iso8601(*time);
}

Result<std::string> moment_when(const std::string& text, Timestamp now) {
  const bool is_event = text.find_first_not_of("0123456789") == std::string::npos;
  return is_event ? text : iso_when(text, now);
}

std::string span_text(std::int64_t ms) {
  const std::int64_t seconds = std::max<std::int64_t>(ms, 0) / 1000;
  const auto two_digits = [](std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m" + two_digits(seconds % 60) + "s";
  if (seconds < 86'400) return std::to_string(seconds / 3600) + "h" + two_digits(seconds / 60 % 60) + "m";
  return std::to_string(seconds / 86'400) + "d" + two_digits(seconds / 3600 % 24) + "h";
}

std::string age_text(std::string_view iso, Timestamp now) {
  const auto time = from_iso8601(iso);
  return time && !time->is_never() ? span_text(now - *time) : "";
}

std::string clock_text(std::string_view iso) {
  if (iso.size() < 20 || iso[10] != 'T' || !iso.ends_with('Z')) return std::string(iso);
  const auto time = from_iso8601(iso);
  if (!time) return std::string(iso);
  const std::time_t seconds = time->ms / 1000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[32];
  const char* form = local.tm_gmtoff == 0 ? "%F %TZ" : "%F %T%z";
  std::string shown(text, std::strftime(text, sizeof text, form, &local));
  if (local.tm_gmtoff != 0) shown.insert(shown.size() - 2, ":");
  return shown;
}

}  // namespace berth::cli

#include "cli/when.h"

#include <algorithm>
#include <chrono>

#include "model/document/quantity.h"

namespace berth::cli {

Timestamp clock_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

Result<Timestamp> parse_when(std::string_view text, Timestamp now) {
  if (text == "now") return now;
  if (text.starts_with('-')) {
    const auto seconds = document::parse_duration_s(text.substr(1));
    if (seconds && *seconds <= now.ms / 1000) return Timestamp{now.ms - *seconds * 1000};
  } else if (text.starts_with('+')) {
    const auto seconds = document::parse_duration_s(text.substr(1));
    if (seconds) return now + *seconds * 1000;
  } else if (const auto time = from_iso8601(text); time && !time->is_never()) {
    return *time;
  }
  return invalid("'" + std::string(text.substr(0, 80)) +
                 "' is not a time; give one such as 2026-11-21T08:15:30Z, 2026-11-21, -24h, +2h or now");
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
  return std::string(iso.substr(0, 10)) + " " + std::string(iso.substr(11, 8)) + "Z";
}

}  // namespace berth::cli

#include "model/document/quantity.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/checked.h"

namespace berth::document {
namespace {

constexpr std::int64_t kMibPerGib = 1024;

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

std::string shown(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

// Removes the digits at the front of the text and returns their value; nothing if there are none. Sets `overflow` if
// the value is too large.
std::optional<std::int64_t> take_digits(std::string_view& text, bool& overflow) {
  std::size_t length = 0;
  std::int64_t value = 0;
  for (; length < text.size() && is_decimal(text[length]); ++length) {
    const auto ten = try_multiply(value, 10);
    const auto sum = ten ? try_add(*ten, text[length] - '0') : std::nullopt;
    overflow = overflow || !sum;
    value = sum.value_or(0);
  }
  if (length == 0) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

// A decimal at the front of the text, in thousandths. 010 is refused, because some readers take it as octal.
struct Decimal {
  std::int64_t milli = 0;
  bool overflow = false;
  bool too_fine = false;
};
std::optional<Decimal> take_decimal(std::string_view& text) {
  if (text.size() > 1 && text[0] == '0' && is_decimal(text[1])) return std::nullopt;
  Decimal decimal;
  const auto whole = take_digits(text, decimal.overflow);
  if (!whole) return std::nullopt;
  std::int64_t fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::size_t length = std::min(text.find_first_not_of("0123456789"), text.size());
    if (length == 0) return std::nullopt;
    for (std::size_t i = 0; i < 3; ++i) fraction = fraction * 10 + (i < length ? text[i] - '0' : 0);
    decimal.too_fine = length > 3;
    text.remove_prefix(length);
  }
  const auto scaled = try_multiply(*whole, 1000);
  const auto sum = scaled ? try_add(*scaled, fraction) : std::nullopt;
  decimal.overflow = decimal.overflow || !sum;
  decimal.milli = sum.value_or(0);
  return decimal;
}

bool looks_negative(std::string_view text) {
  return text.size() > 1 && text[0] == '-' && (is_decimal(text[1]) || text[1] == '.');
}

constexpr auto kSizeUnits = std::to_array<std::pair<std::string_view, unsigned>>(
    {{"Ki", 0}, {"Mi", 10}, {"Gi", 20}, {"Ti", 30}, {"Pi", 40}, {"Ei", 50}});

// Returns by how many bits the unit shifts a KiB, or nothing if it is not a binary unit.
std::optional<unsigned> size_shift(std::string_view unit) {
  if (unit.ends_with('B')) unit.remove_suffix(1);
  for (const auto& [name, shift] : kSizeUnits) {
    if (name == unit) return shift;
  }
  return std::nullopt;
}

Error refuse_unit(std::string_view text, std::string_view unit) {
  std::string hint;
  for (const auto& [name, shift] : kSizeUnits) {
    if (!unit.empty() && (unit.front() & ~0x20) == name.front()) hint = "; did you mean " + std::string(name) + "B?";
  }
  return invalid(shown(text) + " has no binary unit; give KiB, MiB, GiB, TiB or PiB, such as 64GiB" + hint);
}

struct TimeUnit {
  char letter;
  std::int64_t seconds;
};
constexpr auto kTimeUnits = std::to_array<TimeUnit>({{'d', 86'400}, {'h', 3600}, {'m', 60}, {'s', 1}});

// Signal numbers of Linux on x86-64, on which executors run.
constexpr auto kSignals = std::to_array<std::pair<std::string_view, std::int32_t>>({{"HUP", 1},
                                                                                    {"INT", 2},
                                                                                    {"QUIT", 3},
                                                                                    {"USR1", 10},
                                                                                    {"USR2", 12},
                                                                                    {"ALRM", 14},
                                                                                    {"TERM", 15},
                                                                                    {"CONT", 18},
                                                                                    {"TSTP", 20},
                                                                                    {"URG", 23},
                                                                                    {"WINCH", 28},
                                                                                    {"PWR", 30}});

}  // namespace

Result<std::int64_t> parse_milli(std::string_view text) {
  if (looks_negative(text)) return invalid(std::string(text.substr(0, 80)) + " is negative; give 0 or more");
  std::string_view rest = text;
  const auto decimal = take_decimal(rest);
  if (!decimal || !rest.empty()) return invalid(shown(text) + " is not an amount; give a number such as 8 or 0.5");
  if (decimal->overflow) return invalid(std::string(text.substr(0, 80)) + " is too large");
  if (decimal->too_fine)
    return invalid(std::string(text.substr(0, 80)) + " is finer than a thousandth; give at most three decimals");
  return decimal->milli;
}

std::string milli_text(std::int64_t milli) {
  std::string text = std::to_string(milli / 1000);
  if (milli % 1000 == 0) return text;
  std::string rest = std::to_string(1000 + milli % 1000).substr(1);
  while (rest.back() == '0') rest.pop_back();
  return text + "." + rest;
}

Result<std::int64_t> parse_memory_mib(std::string_view text) {
  if (text == "0") return 0;
  if (looks_negative(text)) return invalid(std::string(text.substr(0, 80)) + " is negative; give 0 or more");
  std::string_view unit = text;
  const auto decimal = take_decimal(unit);
  if (!decimal) return invalid(shown(text) + " is not a size; give one such as 64GiB");
  const auto shift = size_shift(unit);
  if (!shift) return refuse_unit(text, unit);
  // Computes in thousandths and in 128 bits: 2^63 * 2^50 would overflow 64 bits, and 1.5TiB stays exact.
  const Int128 kib_milli = Int128{decimal->milli} << *shift;
  const Int128 whole = Int128{1000} * 1024;
  if (decimal->overflow || kib_milli / whole > (Int128{1} << 50))
    return invalid(std::string(text.substr(0, 80)) + " is too large");
  if (decimal->too_fine || kib_milli % whole != 0) {
    return invalid(std::string(text.substr(0, 80)) + " is not a whole number of MiB; round it");
  }
  return static_cast<std::int64_t>(kib_milli / whole);
}

std::string memory_text(std::int64_t mib) {
  if (mib == 0) return "0";
  static constexpr auto kUnits = std::to_array<std::string_view>({"MiB", "GiB", "TiB", "PiB", "EiB"});
  std::size_t unit = 0;
  while (mib % kMibPerGib == 0 && unit + 1 < kUnits.size()) {
    mib /= kMibPerGib;
    ++unit;
  }
  return std::to_string(mib) + std::string(kUnits[unit]);
}

Result<std::int64_t> parse_duration_s(std::string_view text) {
  if (text == "0") return 0;
  if (looks_negative(text))
    return invalid(std::string(text.substr(0, 80)) + " is negative; give a time such as 90s, 10m, 2h or 3d");
  const Error malformed = invalid(shown(text) + " is not a time; give one such as 90s, 10m, 2h, 3d or 1h30m");
  std::string_view rest = text;
  std::optional<std::int64_t> total = 0;
  std::int64_t last_unit = kTimeUnits.front().seconds + 1;
  if (rest.empty()) return malformed;
  while (!rest.empty()) {
    bool overflow = false;
    const auto number = take_digits(rest, overflow);
    const auto* unit = std::find_if(kTimeUnits.begin(), kTimeUnits.end(),
                                    [&](const TimeUnit& one) { return rest.starts_with(one.letter); });
    if (!number || unit == kTimeUnits.end() || unit->seconds >= last_unit) return malformed;
    rest.remove_prefix(1);
    last_unit = unit->seconds;
    const auto seconds = overflow ? std::nullopt : try_multiply(*number, unit->seconds);
    total = seconds && total ? try_add(*total, *seconds) : std::nullopt;
  }
  if (!total) return invalid(std::string(text.substr(0, 80)) + " is too long");
  return *total;
}

std::string duration_text(std::int64_t seconds) {
  if (seconds == 0) return "0s";
  std::string text;
  for (const auto& [letter, length] : kTimeUnits) {
    if (seconds >= length) text += std::to_string(seconds / length) + letter;
    seconds %= length;
  }
  return text;
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  const bool negative = text.starts_with('-');
  std::string_view rest = negative ? text.substr(1) : text;
  bool overflow = false;
  const bool leading_zero = rest.size() > 1 && rest.front() == '0';
  const auto value = take_digits(rest, overflow);
  if (!value || !rest.empty() || leading_zero) {
    return invalid(shown(text) + " is not an integer; give decimal digits alone, without leading zeros");
  }
  const std::int64_t number = negative ? -*value : *value;
  if (overflow || number < low || number > high) {
    return invalid(std::string(text.substr(0, 80)) + " is out of range; give " + std::to_string(low) + " to " +
                   std::to_string(high));
  }
  return number;
}

Result<std::int32_t> parse_signal(std::string_view text) {
  std::string_view name = text;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const auto& [known, number] : kSignals) {
    if (known == name) return number;
  }
  const auto number = parse_integer(text, 1, 64);
  if (!number || *number == 9 || *number == 19) {
    return invalid(shown(text) + " is not a signal that a process can catch; give one such as SIGTERM or SIGUSR1");
  }
  return static_cast<std::int32_t>(*number);
}

std::string signal_text(std::int32_t number) {
  for (const auto& [name, known] : kSignals) {
    if (known == number) return "SIG" + std::string(name);
  }
  return std::to_string(number);
}

}  // namespace berth::document

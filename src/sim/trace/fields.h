#pragma once
// The small grammars of trace cells: whole numbers, decimals, dates, elapsed times, names. Each accepts exactly what it
// says, and nothing that a float parser would let through (NaN, 1e9, hexadecimal, a sign).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::sim {

std::string_view trimmed(std::string_view text);

// Digits only; a fraction of zeros ("12.0", as data frames write whole numbers) is allowed.
std::optional<std::int64_t> parse_whole(std::string_view text);

// "12", "12.5": thousandths, rounded half up. Refused: more than 15 digits before the point.
std::optional<std::int64_t> parse_thousandths(std::string_view text);

// "2017-10-07 01:11:39" or with a T: milliseconds since 1970, read as UTC.
std::optional<std::int64_t> parse_date_ms(std::string_view text);

// "[DD-]HH:MM:SS", "MM:SS": milliseconds.
std::optional<std::int64_t> parse_elapsed_ms(std::string_view text);

// "256000M", "1.5T", "64G", "1024K", "1P", "0.5E": MiB, rounded up. No suffix: MiB.
std::optional<std::int64_t> parse_mebibytes(std::string_view text);

// UTF-8 without control characters, at most 256 bytes: fit to be a name.
bool is_sound_name(std::string_view text);

// The text with every byte that is not UTF-8 replaced by U+FFFD, so that it may stand in JSON and HTML.
std::string with_valid_utf8(std::string_view text);

}  // namespace berth::sim

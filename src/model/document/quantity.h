#pragma once
// Quantities as people write them, for documents, flags and queries alike. Each is exact: nothing is rounded. Errors
// say what is wrong and what would be right, and name no place; who asked adds it.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::document {

// "8", "0.5", "2.125": thousandths. At most three decimals; no sign, no exponent, no unit.
Result<std::int64_t> parse_milli(std::string_view text);
std::string milli_text(std::int64_t milli);

// "64GiB", "512MiB", "1.5TiB": MiB. Binary units only (KiB to EiB; Gi is GiB): 64GB and 64k mean different things to
// different people and are refused. The amount must come to whole MiB. "0" needs no unit.
Result<std::int64_t> parse_memory_mib(std::string_view text);
std::string memory_text(std::int64_t mib);

// "90s", "10m", "2h", "3d", "1h30m": seconds. "0" needs no unit, everything else does.
Result<std::int64_t> parse_duration_s(std::string_view text);
std::string duration_text(std::int64_t seconds);

// Decimal digits with an optional minus, within [low, high].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);

// "SIGUSR1", "USR1" or a number: a signal that a process can catch.
Result<std::int32_t> parse_signal(std::string_view text);
std::string signal_text(std::int32_t number);

}  // namespace berth::document

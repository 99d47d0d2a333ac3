#pragma once
// Quantities as people write them, for documents, flags and queries. They are exact: nothing is rounded. Errors say
// what is wrong and what would be right; the caller adds the place.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::document {

// Reads "8", "0.5", "2.125" as thousandths. At most three decimals; no sign, no exponent, no unit.
Result<std::int64_t> parse_milli(std::string_view text);
std::string milli_text(std::int64_t milli);

// Reads "64GiB", "512MiB", "1.5TiB" as MiB. Only binary units (KiB to EiB; Gi is GiB): 64GB and 64k are refused,
// because people read them differently. The amount must be whole MiB. "0" needs no unit.
Result<std::int64_t> parse_memory_mib(std::string_view text);
std::string memory_text(std::int64_t mib);

// Reads "90s", "10m", "2h", "3d", "1h30m" as seconds. Every number but "0" needs a unit.
Result<std::int64_t> parse_duration_s(std::string_view text);
std::string duration_text(std::int64_t seconds);

// Reads decimal digits with an optional minus. Requires a result within [low, high].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);

// Reads "SIGUSR1", "USR1" or a number. Requires a signal that a process can catch.
Result<std::int32_t> parse_signal(std::string_view text);
std::string signal_text(std::int32_t number);

}  // namespace berth::document

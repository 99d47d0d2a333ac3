// fuzz: berth_base
// Any instant prints as ISO 8601 in at most 30 characters (the year has nine digits at the far ends).
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/timestamp.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  berth::Timestamp time;
  if (size < sizeof time.ms) return 0;
  std::memcpy(&time.ms, bytes, sizeof time.ms);
  if (berth::to_iso8601(time).size() > 30) __builtin_trap();
  return 0;
}

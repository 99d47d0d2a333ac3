// fuzz: src/identity/token.cc berth_model Boost::json
// Signed tokens from anybody: no bytes may crash the reader, and what it accepts is within its limits.

#include <cstddef>
#include <cstdint>

#include "identity/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return berth::identity::fuzz_read_token(data, size);
}

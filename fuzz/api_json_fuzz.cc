// fuzz: src/api/http/json_decode.cc berth_model Boost::json
// The bodies of requests: no bytes may crash the decoder, and whatever it accepts survives being written and decoded
// again.

#include <cstddef>
#include <cstdint>

#include "api/http/json_decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return berth::http::fuzz_json_decode(data, size);
}

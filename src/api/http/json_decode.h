#pragma once
// The bodies of requests are strict JSON (model/strict_json.h).

#include <cstdint>

#include "model/strict_json.h"

namespace berth::http {

using berth::decode_json;
using berth::JsonLimits;

// Entry for libFuzzer: decodes the bytes, and whatever is accepted must survive writing and decoding again. Returns 0.
int fuzz_json_decode(const std::uint8_t* data, std::size_t size);

}  // namespace berth::http

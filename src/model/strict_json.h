#pragma once
// Strict JSON: what two readers could understand differently is refused. On top of RFC 8259: a duplicate key, a NUL in
// a string, an integer beyond 64 bits, a number beyond double, nesting over the limit, text over the limit, and
// anything after the value are errors, each named with line, column and byte.

#include <boost/json/value.hpp>
#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace berth {

struct JsonLimits {
  std::size_t bytes = 1024 * 1024;
  std::size_t depth = 32;
};

// kTooLarge over the size limit, kInvalid otherwise.
Result<boost::json::value> decode_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace berth

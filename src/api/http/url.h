#pragma once
// Decoding of request targets. Refused: broken percent-encoding, bytes that are not UTF-8 once decoded, and control
// characters, which no name in berth has and which forge log lines and headers.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::http {

bool is_valid_utf8(std::string_view text);

// One path segment; '+' is itself.
std::optional<std::string> decode_segment(std::string_view text);

// "a=1&b=x%20y" without the '?'; '+' is a space. An error names the parameter.
Result<std::multimap<std::string, std::string>> decode_query(std::string_view text);

}  // namespace berth::http

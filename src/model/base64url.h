#pragma once
// base64url without padding, as the parts of a signed token have it (RFC 7515, section 2). Leftover bits must be zero,
// so that one text has one form.

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

Result<std::string> decode_base64url(std::string_view text);

}  // namespace berth

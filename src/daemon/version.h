#pragma once
// The version of this binary.

#include <string_view>

namespace berth::daemon {

inline constexpr const char* kVersionText = "0.1.0";

}  // namespace berth::daemon

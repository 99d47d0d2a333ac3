#pragma once
// The version this binary was built as.

#include <string_view>

namespace berth::daemon {

inline constexpr const char* kVersionText = "0.1.0";

}  // namespace berth::daemon

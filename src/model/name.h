#pragma once
// Names in the model: RFC 1123 labels plus capitals, dots and underscores. So a name is safe in paths, labels, tables
// and shells, and no two names look the same.

#include <cstddef>
#include <string_view>

namespace berth {

inline constexpr std::size_t kMaxNameLength = 63;
inline constexpr std::string_view kNameRule =
    "use 1-63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit";

bool well_formed_name(std::string_view name);

}  // namespace berth

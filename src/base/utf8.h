#pragma once
// Checks of UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.

#include <cstddef>
#include <string_view>

namespace berth {

// Returns the offset of the first byte that begins no valid character, or npos if the whole text is UTF-8.
std::size_t first_not_utf8(std::string_view text);

inline bool is_utf8(std::string_view text) { return first_not_utf8(text) == std::string_view::npos; }

// Returns whether a text that is shown to others, such as a reason, is one line with something visible in it: UTF-8
// without control characters, separators of lines and marks that turn the direction of writing, and more than blanks
// and invisible characters.
bool is_plain_line(std::string_view text);

}  // namespace berth

#pragma once
// Text of another user, made safe to show on a terminal: control characters, ANSI sequences, invisible and
// direction-changing characters and broken UTF-8 are shown as escapes (\x1b, \u202e) and do nothing.

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::cli {

std::string printable(std::string_view text);

// Columns of a terminal that printable text takes: East Asian wide characters and emoji take two, combining marks none.
std::size_t display_width(std::string_view text);

// `text` cut to at most `width` columns, the last of which is then an ellipsis.
std::string shorten(std::string_view text, std::size_t width);
// The same at the front: what is left begins with the ellipsis. Of a path whole parts are left if one fits: "…/nlp".
std::string shorten_front(std::string_view text, std::size_t width);

}  // namespace berth::cli

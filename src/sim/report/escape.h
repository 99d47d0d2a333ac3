#pragma once
// Names come from users and traces. Each place where one is written has its own way to be harmed, and its own escape.

#include <string>
#include <string_view>

namespace berth::sim {

// For HTML text and quoted attributes. Invisible characters that reorder or hide text (bidirectional controls, zero
// width) and control characters are shown as their code point.
std::string html_text(std::string_view text);

// A CSV cell, always quoted. A cell that a spreadsheet would take for a formula (first character = + - @ tab or
// carriage return, blanks before it not counting) gets an apostrophe in front, as OWASP advises against CSV injection.
std::string csv_cell(std::string_view text);

// JSON that may stand inside a <script> element: < > & and the line separators U+2028, U+2029 as \u escapes.
std::string json_for_script(std::string_view json);

// Valid UTF-8 in which what would be invisible or reorder text is shown as its code point: for a terminal, and for
// names that a script sets as text.
std::string visible_text(std::string_view text);

}  // namespace berth::sim

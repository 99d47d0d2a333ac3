#pragma once
// Escapes for names, which come from users and traces. Each kind of output can be attacked in its own way, so each has
// its own escape.

#include <string>
#include <string_view>

namespace berth::sim {

// For HTML text and quoted attributes. Control characters, and invisible characters that reorder or hide text
// (bidirectional controls, zero width), are shown as their code point.
std::string html_text(std::string_view text);

// Returns a CSV cell, always quoted. A cell that a spreadsheet would read as a formula gets an apostrophe in front, as
// OWASP advises against CSV injection. Such a cell begins with = + - @ tab or carriage return, after any blanks.
std::string csv_cell(std::string_view text);

// Returns JSON that is safe inside a <script> element: < > & and the line separators U+2028, U+2029 become \u escapes.
std::string json_for_script(std::string_view json);

// Returns valid UTF-8 in which invisible and reordering characters are shown as their code point. For a terminal, and
// for names that a script sets as text.
std::string visible_text(std::string_view text);

}  // namespace berth::sim

#pragma once
// Cells of comma-separated values.

#include <string>
#include <string_view>

namespace berth {

// One cell of CSV after RFC 4180. A text that a spreadsheet would take for a formula (=, +, -, @, tab, return at its
// head) is led by an apostrophe.
std::string csv_text_cell(std::string_view text);

}  // namespace berth

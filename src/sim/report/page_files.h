#pragma once
// The style and the script of report.html. They are files in page/, beside this one, and are compiled into the binary
// unchanged.

#include <string_view>

namespace berth::sim {

std::string_view report_style();
std::string_view report_script();

}  // namespace berth::sim

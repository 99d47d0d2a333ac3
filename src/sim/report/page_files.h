#pragma once
// The style and the script of report.html, which lie beside this file in page/ and are taken into the binary as they
// are.

#include <string_view>

namespace berth::sim {

std::string_view report_style();
std::string_view report_script();

}  // namespace berth::sim

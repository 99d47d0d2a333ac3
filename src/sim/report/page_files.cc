#include "sim/report/page_files.h"

#include <cstddef>

// The assembler copies each file between two labels. BERTH_REPORT_PAGE is the folder, set where this file is compiled.
__asm__(
    ".section .rodata\n"
    ".global berth_report_style\n"
    "berth_report_style:\n"
    ".incbin \"" BERTH_REPORT_PAGE
    "/report.css\"\n"
    ".global berth_report_style_end\n"
    "berth_report_style_end:\n"
    ".global berth_report_script\n"
    "berth_report_script:\n"
    ".incbin \"" BERTH_REPORT_PAGE
    "/report.js\"\n"
    ".global berth_report_script_end\n"
    "berth_report_script_end:\n"
    ".byte 0\n"
    ".previous\n");

// Symbols of the assembler above. NOLINTBEGIN(readability-identifier-naming)
extern "C" {
extern const char berth_report_style[];
extern const char berth_report_style_end[];
extern const char berth_report_script[];
extern const char berth_report_script_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace berth::sim {

std::string_view report_style() {
  return {berth_report_style, static_cast<std::size_t>(berth_report_style_end - berth_report_style)};
}
std::string_view report_script() {
  return {berth_report_script, static_cast<std::size_t>(berth_report_script_end - berth_report_script)};
}

}  // namespace berth::sim

#pragma once
// report.html: one file that needs no network and no server. Tables are plain HTML, readable without script. A small
// script draws the curves and the Gantt chart from data in the page. A content security policy forbids everything else.

#include <string>
#include <vector>

#include "sim/report/metrics.h"
#include "sim/report/run_result.h"

namespace berth::sim {

std::string report_page(const ReportInput& input, const std::vector<MeasuredRun>& runs);

}  // namespace berth::sim

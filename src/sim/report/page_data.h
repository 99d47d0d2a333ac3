#pragma once
// Returns the data for the script of report.html: downsampled curves and Gantt images, as one JSON text.

#include <string>
#include <vector>

#include "sim/report/metrics.h"

namespace berth::sim {

inline constexpr std::size_t kSeedsDrawn = 12;  // per policy; later seeds are only in the tables

std::string page_data(const std::vector<MeasuredRun>& runs);

}  // namespace berth::sim

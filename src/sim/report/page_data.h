#pragma once
// What the script of report.html draws: curves and Gantt images, already downsampled, as one JSON text.

#include <string>
#include <vector>

#include "sim/report/metrics.h"

namespace berth::sim {

inline constexpr std::size_t kSeedsDrawn = 12;  // per policy; further seeds are in the tables only

std::string page_data(const std::vector<MeasuredRun>& runs);

}  // namespace berth::sim

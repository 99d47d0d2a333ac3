#pragma once
// Reported quantities (storage, egress, energy) as a file or a body; docs/billing.md has the syntax.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"

namespace berth::document {

inline constexpr std::size_t kMostReportsAtOnce = 1000;

// Returns the reports in `text`, well-formed and without the reporting user. An error has a line for each mistake,
// FILE:LINE:COLUMN: PATH: what is wrong; what would be right.
Result<std::vector<QuantityReported>> read_quantities(std::string_view text, std::string_view file);

}  // namespace berth::document

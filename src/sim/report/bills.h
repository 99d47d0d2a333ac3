#pragma once
// What runs would have cost and earned, queue by queue: for the terminal, the page and summary.json.

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "sim/report/metrics.h"

namespace berth::sim {

// The bill of one policy by one price book. The first row has the headings, the last one the sums.
struct BillTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;
};

// Returns the bills of the first run of each policy, book by book. From the second book on the last column says how
// much more a queue pays than by the first one. Empty: no prices were given.
std::vector<BillTable> bill_tables(const std::vector<MeasuredRun>& runs);

std::string bills_section(const std::vector<MeasuredRun>& runs);  // of report.html

boost::json::array bills_array(const RunResult& run);  // of summary.json

}  // namespace berth::sim

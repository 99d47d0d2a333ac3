// fuzz: src/sim/trace berth_base Boost::json yaml-cpp ZLIB::ZLIB
// The CSV parser alone: whatever it reads, written again with every field quoted, reads the same; and node files and
// orders of arrival never crash their readers.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "sim/trace/arrivals.h"
#include "sim/trace/csv.h"
#include "sim/trace/read_trace.h"

namespace {

using berth::sim::CsvDialect;
using berth::sim::CsvReader;
using berth::sim::CsvRow;
using Rows = std::vector<std::vector<std::string>>;

Rows sound_rows(std::string_view text) {
  CsvReader reader(text, CsvDialect{});
  Rows rows;
  CsvRow row;
  std::string reason;
  for (;;) {
    const CsvReader::Step step = reader.next(row, reason);
    if (step == CsvReader::Step::kEnd) return rows;
    if (step == CsvReader::Step::kRow) rows.push_back(row.fields);
  }
}

std::string quoted(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? "\"" : ",\"";
      for (const char c : row[i]) text.append(c == '"' ? 2 : 1, c);
      text += '"';
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Rows rows = sound_rows(bytes);
  BERTH_CHECK(sound_rows(quoted(rows)) == rows);
  berth::sim::ReadOptions options;
  options.max_bytes = std::size_t{1} << 20U;
  berth::sim::Trace trace;
  if (berth::sim::read_nodes_text("fuzz", bytes, options, trace)) {
    BERTH_CHECK(berth::sim::fleet_gpu_milli(trace) >= 0);
  }
  if (const auto arrivals = berth::sim::read_arrivals_text("fuzz", bytes, options)) {
    for (const auto& [seed, pods] : arrivals->pods_by_seed) BERTH_CHECK(!pods.empty());
  }
  return 0;
}

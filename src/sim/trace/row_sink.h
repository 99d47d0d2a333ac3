#pragma once
// A RowSink takes the rows of a reader: good rows go into the trace, bad rows and the defaults taken are counted. With
// `strict` the first bad row ends the reading.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "model/node.h"
#include "model/resources.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/trace.h"

namespace berth::sim {

// Limits of valid values: far above any machine, far below an overflow of their products.
inline constexpr std::int64_t kMaxGpus = 1'000'000;
inline constexpr auto kMostGpusOfNode = static_cast<std::int64_t>(kMaxGpusPerNode);
inline constexpr std::int64_t kMaxWorkers = 1'000'000;
inline constexpr std::int64_t kMaxCpuMilli = 1'000'000'000'000;
inline constexpr std::int64_t kMaxMemMib = 1'000'000'000'000;
inline constexpr std::int64_t kMaxTimeMs = std::int64_t{1000} * 366 * 86'400'000;  // a thousand years

// CPU and memory of a node that does not state them: so much that they never limit.
inline constexpr std::int64_t kUnstatedNodeCpuMilli = 1'000'000'000;
inline constexpr std::int64_t kUnstatedNodeMemMib = 1'000'000'000;

class RowSink {
 public:
  RowSink(std::string file, const ReadOptions& options, Trace& trace)
      : file_(std::move(file)), options_(options), trace_(trace) {}

  const ReadOptions& options() const { return options_; }
  const std::string& file() const { return file_; }

  // Adds a row. Its defaults count only if the row is taken.
  void add(TraceJob job, const std::vector<std::string_view>& defaults);
  void add(TraceNode node, std::int64_t line, const std::vector<std::string_view>& defaults);
  void bad_row(std::int64_t line, const std::string& reason);
  void leave_out(std::string_view rule) { ++trace_.rows_left_out[std::string(rule)]; }

  // Returns true if no more rows are wanted; status() says why.
  bool stopped() const { return refusal_.has_value(); }
  void refuse(Error error) { refusal_ = std::move(error); }
  // Counts a row against the limit.
  void count_row();
  Result<void> status() const;
  std::int64_t rows() const { return rows_; }

  // Reads a date of the source (dates.h), and remembers whether any relied on the zone.
  Result<std::int64_t> date_ms(std::string_view text);

  // For sources with dates: the earliest submission becomes time 0.
  void start_at_first_submission();

 private:
  std::string file_;
  const ReadOptions& options_;
  Trace& trace_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> models_;  // of the nodes taken
  std::optional<Error> refusal_;
  std::int64_t rows_ = 0;
  bool any_without_offset_ = false;
};

}  // namespace berth::sim

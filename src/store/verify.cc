#include <fmt/format.h>

#include "store/log.h"

namespace berth::store {

namespace {

constexpr std::uint64_t kRecordsPerReport = 4096;
constexpr std::size_t kHistoryPage = 1024;

Error given_up() { return {ErrorCode::kUnavailable, "the check was given up before its end"}; }

// Returns the error with the part of the log that is not damaged.
Error with_sound(Error error, const ChainReport& report) {
  if (error.code != ErrorCode::kCorrupt) return error;
  const std::uint64_t last = report.first_seq + report.records - 1;
  if (report.records == 0) {
    error.message += "; no record before it could be read";
  } else if (last == report.last_seq) {
    error.message += fmt::format("; records {} to {}, all there are, are sound", report.first_seq, last);
  } else {
    error.message += fmt::format("; the last record that can be read is {}, of {}", last, report.last_seq);
  }
  return error;
}

template <class GoOn>
Result<std::uint64_t> count_history(const Log& log, const GoOn& go_on) {
  std::uint64_t rows = 0;
  HistoryQuery query;
  query.limit = kHistoryPage;
  while (true) {
    const auto page = log.history(query);
    if (!page) {
      Error error = page.error();
      if (error.code == ErrorCode::kCorrupt && !error.message.starts_with("history row")) {
        error.message = fmt::format("history behind row {}: {}", query.after, error.message);
      }
      return error;
    }
    if (!go_on()) return given_up();
    if (page->empty()) return rows;
    rows += page->size();
    query.after = page->back().cursor;
  }
}

}  // namespace

Result<ChainReport> verify_chain(const Log& log, const ChainProgress& progress) {
  const Head head = log.last();
  ChainReport report;
  report.first_seq = log.first_seq();
  report.last_seq = head.seq;
  report.head_hash = head.hash;
  const std::uint64_t total = head.seq + 1 - report.first_seq;
  const auto go_on = [&] { return !progress || progress(report.records, total); };
  // Records appended during the check are left out, so that the report is about one moment.
  const auto walked = log.read(report.first_seq, [&](const Record& record) -> Result<bool> {
    if (record.seq > head.seq) return false;
    ++report.records;
    if (report.records % kRecordsPerReport == 0 && !go_on()) return given_up();
    return true;
  });
  if (!walked) return with_sound(walked.error(), report);
  const auto history_rows = count_history(log, go_on);
  if (!history_rows) return with_sound(history_rows.error(), report);
  report.history_rows = *history_rows;
  return report;
}

}  // namespace berth::store

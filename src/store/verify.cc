#include "store/log.h"

namespace berth::store {

namespace {

constexpr std::uint64_t kRecordsPerReport = 4096;
constexpr std::size_t kHistoryPage = 1024;

Error given_up() { return {ErrorCode::kUnavailable, "the check was given up before its end"}; }

template <class GoOn>
Result<std::uint64_t> count_history(const Log& log, const GoOn& go_on) {
  std::uint64_t rows = 0;
  HistoryQuery query;
  query.limit = kHistoryPage;
  while (true) {
    const auto page = log.history(query);
    if (!page) return page.error();
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
  // Records appended while we walk are left out, so that the report speaks of one moment.
  const auto walked = log.read(report.first_seq, [&](const Record& record) -> Result<bool> {
    if (record.seq > head.seq) return false;
    ++report.records;
    if (report.records % kRecordsPerReport == 0 && !go_on()) return given_up();
    return true;
  });
  if (!walked) return walked.error();
  const auto history_rows = count_history(log, go_on);
  if (!history_rows) return history_rows.error();
  report.history_rows = *history_rows;
  return report;
}

}  // namespace berth::store

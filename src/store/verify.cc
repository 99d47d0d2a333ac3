#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "store/event_codec.h"
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

// Hands every history row to `visit`, which returns an error to end the walk. A cursor that does not rise is damage,
// and would otherwise be followed for ever.
template <class GoOn, class Visit>
Result<std::uint64_t> walk_history(const Log& log, const GoOn& go_on, Visit&& visit) {
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
    for (const HistoryRow& row : *page) {
      if (row.cursor <= query.after) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("history row {}: it stands behind row {}", row.cursor, query.after)};
      }
      query.after = row.cursor;
      if (Result<void> seen = visit(row); !seen) return seen.error();
      ++rows;
    }
  }
}

struct FinishedAt {
  std::uint64_t job = 0;
  std::uint64_t seq = 0;
};

// The job-finished events up to `last_seq`, in their order.
template <class GoOn>
Result<std::vector<FinishedAt>> finished_jobs(const Log& log, std::uint64_t last_seq, const GoOn& go_on) {
  static const auto kFinishedKind = static_cast<std::uint16_t>(Event(JobFinished{}).index());
  std::vector<FinishedAt> finished;
  std::uint64_t walked = 0;
  const auto read = log.read(log.first_seq(), [&](const Record& record) -> Result<bool> {
    if (record.seq > last_seq) return false;
    if (++walked % kRecordsPerReport == 0 && !go_on()) return given_up();
    if (record.kind != kFinishedKind) return true;
    const auto event = to_event(record);
    if (!event) return event.error();
    finished.push_back({std::get<JobFinished>(event->event).job.value(), record.seq});
    return true;
  });
  if (!read) return read.error();
  return finished;
}

Error missing_row(const FinishedAt& finished) {
  return {ErrorCode::kCorrupt,
          fmt::format("history: job {} has no row, and record {} says that it finished", finished.job, finished.seq)};
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
  const auto history_rows = walk_history(log, go_on, [](const HistoryRow&) { return Result<void>(); });
  if (!history_rows) return with_sound(history_rows.error(), report);
  report.history_rows = *history_rows;
  return report;
}

Result<void> verify_history(const Log& log, const ChainProgress& progress) {
  const Head head = log.last();
  const bool whole = log.first_seq() == 1;
  const auto go_on = [&] { return !progress || progress(head.seq, head.seq); };
  auto finished = finished_jobs(log, head.seq, go_on);
  if (!finished) return finished.error();
  std::vector<FinishedAt> by_job = *finished;
  std::sort(by_job.begin(), by_job.end(), [](const FinishedAt& a, const FinishedAt& b) { return a.job < b.job; });
  std::vector<bool> seen(by_job.size(), false);
  const auto rows = walk_history(log, go_on, [&](const HistoryRow& row) -> Result<void> {
    const auto found = std::lower_bound(by_job.begin(), by_job.end(), row.job_id,
                                        [](const FinishedAt& one, std::uint64_t job) { return one.job < job; });
    if (found != by_job.end() && found->job == row.job_id)
      seen[static_cast<std::size_t>(found - by_job.begin())] = true;
    // Rows behind these belong to records that were appended meanwhile.
    if (!whole || row.cursor > finished->size()) return {};
    const FinishedAt& expected = (*finished)[row.cursor - 1];
    if (expected.job == row.job_id) return {};
    return Error{ErrorCode::kCorrupt,
                 fmt::format("history row {}: it is of job {}, and record {} says that job {} finished", row.cursor,
                             row.job_id, expected.seq, expected.job)};
  });
  if (!rows) return rows.error();
  for (std::size_t i = 0; i < by_job.size(); ++i) {
    if (!seen[i]) return missing_row(by_job[i]);
  }
  return {};
}

}  // namespace berth::store

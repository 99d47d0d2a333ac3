#include "store/log_transfer.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <vector>

#include "model/event.h"
#include "store/checkpoint_files.h"
#include "store/data_directory.h"
#include "store/durable_log.h"
#include "store/hash_chain.h"
#include "store/log_copy.h"
#include "store/postgres_log.h"
#include "store/postgres_mark.h"
#include "store/sqlite_log.h"

namespace berth::store {

namespace {

constexpr std::size_t kMostRecords = 4096;
constexpr std::size_t kMostBytes = 8U << 20U;
constexpr std::size_t kRowsAtOnce = 1024;
constexpr const char* kCopying = "store-copy";  // the directory in `to` that a copy is made in

// The rows of the history in order, at most so many.
class HistoryFeed {
 public:
  explicit HistoryFeed(const Log& log, std::uint64_t rows = std::numeric_limits<std::uint64_t>::max())
      : log_(log), left_(rows) {}
  Result<std::vector<HistoryRow>> next(std::size_t count) {
    std::vector<HistoryRow> rows;
    while (rows.size() < std::min<std::uint64_t>(count, left_)) {
      if (at_ == page_.size()) {
        HistoryQuery query;
        query.after = after_;
        query.limit = kRowsAtOnce;
        auto page = log_.history(query);
        if (!page) return page.error();
        if (page->empty()) break;
        page_ = std::move(*page);
        at_ = 0;
      }
      after_ = page_[at_].cursor;
      rows.push_back(std::move(page_[at_++]));
      rows.back().cursor = 0;
    }
    left_ -= rows.size();
    return rows;
  }

 private:
  const Log& log_;
  std::uint64_t left_;
  std::uint64_t after_ = 0;
  std::vector<HistoryRow> page_;
  std::size_t at_ = 0;
};

// Appends records in batches of one epoch, and with each batch the history rows of the jobs that it finished: row k is
// of the k-th job that finished (verify_history).
class Copier {
 public:
  Copier(Log& to, HistoryFeed history) : to_(to), history_(std::move(history)) {}

  Result<void> add(const Record& record) {
    if (!batch_.empty() &&
        (batch_.front().epoch != record.epoch || batch_.size() == kMostRecords || bytes_ > kMostBytes)) {
      if (auto ok = flush(); !ok) return ok;
    }
    static const auto kFinished = static_cast<std::uint16_t>(Event(JobFinished{}).index());
    finished_ += record.kind == kFinished ? 1 : 0;
    bytes_ += record.payload.size();
    batch_.push_back(record);
    return {};
  }

  Result<void> flush() {
    if (batch_.empty()) return {};
    if (auto ok = raise_epoch(batch_.front().epoch); !ok) return ok;
    const auto rows = history_.next(finished_);
    if (!rows) return rows.error();
    if (auto ok = to_.append(batch_.front().epoch, batch_.front().seq, batch_, *rows); !ok) return ok;
    rows_ += rows->size();
    batch_.clear();
    finished_ = 0;
    bytes_ = 0;
    return {};
  }

  std::uint64_t history_rows() const { return rows_; }

  Result<void> raise_epoch(std::uint64_t epoch) {
    while (to_.last().epoch < epoch) {
      if (auto ok = to_.take_epoch(); !ok) return ok.error();
    }
    return {};
  }

 private:
  Log& to_;
  HistoryFeed history_;
  std::vector<Record> batch_;
  std::uint64_t rows_ = 0;
  std::size_t finished_ = 0;
  std::size_t bytes_ = 0;
};

// Returns the number of history rows. What a server appends to `from` meanwhile is left out.
Result<std::uint64_t> copy_records(const Log& from, const Head& head, Log& to) {
  Copier copier(to, HistoryFeed(from));
  auto read = from.read(1, [&](const Record& record) -> Result<bool> {
    if (record.seq > head.seq) return false;
    if (auto ok = copier.add(record); !ok) return ok.error();
    return true;
  });
  if (read) read = copier.flush();
  if (read) read = copier.raise_epoch(head.epoch);
  if (!read) return read.error();
  return copier.history_rows();
}

// SHA-256 over the hashes of the first `rows` rows of the history.
Result<Hash> hash_of_history(const Log& log, std::uint64_t rows) {
  HistoryFeed feed(log, rows);
  Hash hash{};
  while (true) {
    const auto page = feed.next(kRowsAtOnce);
    if (!page) return page.error();
    if (page->empty()) return hash;
    std::string hashes(reinterpret_cast<const char*>(hash.data()), hash.size());
    for (const HistoryRow& row : *page) {
      const Hash one = hash_of(row);
      hashes.append(reinterpret_cast<const char*>(one.data()), one.size());
    }
    hash = sha256(hashes);
  }
}

Result<void> compare(const Log& from, const Head& head, const TransferReport& copied, const Log& to) {
  const auto differs = [](const std::string& what) {
    return Error{ErrorCode::kCorrupt, "the copy differs from the log: " + what + "; do not use it"};
  };
  const auto chain = verify_chain(to, {});
  if (!chain) return chain.error();
  if (!(to.last() == head))
    return differs(fmt::format("it ends at record {} of epoch {} instead of {} of {}", to.last().seq, to.last().epoch,
                               head.seq, head.epoch));
  if (chain->records != copied.records || chain->history_rows != copied.history_rows)
    return differs("another number of records or history rows");
  if (auto history = verify_history(to, {}); !history) return history;
  const auto theirs = hash_of_history(from, copied.history_rows);
  if (!theirs) return theirs.error();
  const auto ours = hash_of_history(to, copied.history_rows);
  if (!ours) return ours.error();
  return *theirs == *ours ? Result<void>() : Result<void>(differs("its history"));
}

Result<TransferReport> copy_and_compare(const DurableLog& from, Log& to) {
  if (from.first_seq() != 1)
    return Error{ErrorCode::kUnsupported, "the beginning of the log was cut off; such a log is not copied"};
  const Head head = from.last();
  const auto source = verify_chain(from, {});
  if (!source) return source.error();
  if (auto foreign = from.check_foreign(); !foreign) return foreign.error();
  if (auto history = verify_history(from, {}); !history) return history.error();
  const auto history_rows = copy_records(from, head, to);
  if (!history_rows) return history_rows.error();
  TransferReport report{source->records, *history_rows, head, 0};
  const auto checkpoint = from.load_checkpoint_at(head.seq);
  if (!checkpoint) return checkpoint.error();
  if (*checkpoint) {
    if (auto saved = to.save_checkpoint((*checkpoint)->seq, (*checkpoint)->bytes); !saved) return saved.error();
    report.checkpoint = (*checkpoint)->seq;
  }
  if (auto same = compare(from, head, report, to); !same) return same.error();
  return report;
}

// A copy in a directory of its own. Closing a log moves what is left of its write-ahead log, and keeps errors of that
// to itself: opening it once more moves it as well, and tells them.
Result<TransferReport> make_copy(const DurableLog& from, const std::filesystem::path& made) {
  auto copy = [&]() -> Result<TransferReport> {
    auto log = SqliteLog::open(made);
    if (!log) return log.error();
    return copy_and_compare(from, **log);
  }();
  if (!copy) return copy;
  {
    const auto whole = SqliteLog::open(made);
    if (!whole) return whole.error();
    if (!((*whole)->last() == copy->head))
      return Error{ErrorCode::kIo, made.string() + ": the copy does not end where it did; is the disk full?"};
  }
  std::error_code failure;
  if (std::filesystem::exists(made / "log.db-wal", failure) && !std::filesystem::is_empty(made / "log.db-wal", failure))
    return Error{ErrorCode::kIo, made.string() + ": not everything could be moved into log.db; is the disk full?"};
  return copy;
}

// The copy is made in a directory of its own in `to`, and then moved; log.db comes last, and makes it a log.
Result<void> move_files(const std::filesystem::path& made, const std::filesystem::path& to) {
  auto names = names_in(made);
  if (!names) return names.error();
  std::sort(names->begin(), names->end(),
            [](const auto& a, const auto& b) { return (a == "log.db") < (b == "log.db"); });
  for (const std::string& name : *names) {
    if (name == "lock" || name.starts_with("log.db-")) continue;
    if (::rename((made / name).c_str(), (to / name).c_str()) != 0) return io_error((to / name).string(), "make", errno);
    if (auto ok = keep_owner(to, to / name); !ok) return ok;
  }
  if (auto ok = sync_directory(to); !ok) return ok;
  std::error_code ignored;
  std::filesystem::remove_all(made, ignored);
  return {};
}

// Whatever SQLite would take for a part of the new log.db: a write-ahead log or a journal that an old one left. An
// empty one says nothing, as the index of one (log.db-shm), and is removed.
Result<void> make_room(const std::filesystem::path& to) {
  std::error_code failure;
  for (const char* name : {"log.db", "log.db-wal", "log.db-journal", "log.db-shm"}) {
    const std::filesystem::path path = to / name;
    const bool is_there = std::filesystem::exists(path, failure);
    if (failure) return io_error(path.string(), "look for", failure.value());
    if (!is_there) continue;
    const std::string_view kind = std::string_view(name).substr(6);
    const bool says_nothing = kind == "-shm" || (!kind.empty() && std::filesystem::is_empty(path, failure));
    if (!says_nothing) {
      return conflict(
          fmt::format("{} has a log already ({}); move its log.db, log.db-wal, log.db-shm, head and checkpoint-* away "
                      "together, or name another directory",
                      to.string(), name));
    }
    if (!std::filesystem::remove(path, failure)) return io_error(path.string(), "remove", failure.value());
  }
  return {};
}

Result<TransferReport> copy_to_directory(const DurableLog& from, const std::filesystem::path& to) {
  auto lock = DataDirectory::take(to);  // no server may be running on it
  if (!lock) return lock.error();
  if (auto ok = keep_owner(to, to / "lock"); !ok) return ok.error();
  if (auto ok = make_room(to); !ok) return ok.error();
  std::error_code failure;
  const std::filesystem::path made = to / kCopying;
  std::filesystem::remove_all(made, failure);  // of a copy that did not come to its end
  auto copy = make_copy(from, made);
  if (!copy) {
    std::filesystem::remove_all(made, failure);
    return copy;
  }
  // Checkpoints that lie there are of another log.
  Disk disk(std::nullopt, 0);
  for (const std::uint64_t seq : CheckpointFiles(to, disk).list())
    std::filesystem::remove(to / fmt::format("checkpoint-{:020}", seq), failure);
  if (auto moved = move_files(made, to); !moved) return moved.error();
  if (auto removed = remove_postgres_mark(to); !removed) return removed.error();
  return copy;
}

Result<TransferReport> copy_to_database(const DurableLog& from, const std::string& to) {
  PostgresOptions options;
  options.unfinished = true;
  options.deadline_ms = 120'000;  // a batch is large, and nobody waits for it
  auto log = PostgresLog::open(to, options);
  if (!log) return log.error();
  auto copy = copy_and_compare(from, **log);
  if (!copy) {
    return Error{copy.error().code,
                 copy.error().message + ". What was copied is left, and no server opens it: DROP SCHEMA berth CASCADE"};
  }
  if (auto finished = (*log)->finish_copy(); !finished) return finished.error();
  return copy;
}

}  // namespace

Result<TransferReport> transfer_log(const std::string& from, const std::string& to) {
  const auto log = open_log_read_only(from);
  if (!log) return log.error();
  return is_postgres_address(to) ? copy_to_database(**log, to) : copy_to_directory(**log, to);
}

}  // namespace berth::store

#include "store/sqlite_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace berth::store {

namespace {

constexpr std::size_t kChunkRecords = 256;
constexpr std::size_t kChunkBytes = 4U << 20U;
constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

template <class T>
std::optional<T> narrowed(std::optional<std::int64_t> value) {
  if (!value || !std::in_range<T>(*value)) return std::nullopt;
  return static_cast<T>(*value);
}

Result<HistoryRow> checked_history_row(const Statement& row) {
  const auto cursor = row.integer(0);
  const auto job_id = row.integer(1);
  const auto finished_ms = row.integer(2);
  const auto bytes = row.bytes(3);
  const auto hash = to_hash(row.bytes(4));
  const auto damaged = [&] {
    return Error{ErrorCode::kCorrupt, fmt::format("history row {}: its hash does not hold", cursor.value_or(-1))};
  };
  if (!cursor || !job_id || !finished_ms || !bytes || !hash) return damaged();
  HistoryRow found{
      static_cast<std::uint64_t>(*job_id), {*finished_ms}, std::string(*bytes), static_cast<std::uint64_t>(*cursor)};
  if (hash_of(found) != *hash) return damaged();
  return found;
}

}  // namespace

Result<std::unique_ptr<SqliteReader>> SqliteReader::open(const std::string& path, const char* vfs) {
  auto connection = Connection::open(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, vfs);
  if (!connection) return connection.error();
  std::unique_ptr<SqliteReader> reader(new SqliteReader);
  reader->connection_ = std::move(*connection);
  if (auto ok = prepare_reader(reader->connection_); !ok) return ok.error();
  if (auto ok = reader->prepare_statements(); !ok) return ok.error();
  return reader;
}

Result<void> SqliteReader::prepare_statements() {
  const std::pair<Statement*, const char*> statements[] = {
      {&begin_, "BEGIN"},
      {&end_, "COMMIT"},
      {&select_extent_, kSelectExtent},
      {&select_hash_, "SELECT hash FROM records WHERE seq = ?1"},
      {&select_records_,
       "SELECT seq, epoch, time_ms, kind, version, payload, hash FROM records WHERE seq >= ?1 ORDER BY seq LIMIT ?2"},
      {&history_of_job_,
       "SELECT cursor, job_id, finished_ms, bytes, hash FROM history WHERE job_id = ?4 AND cursor > ?1 AND cursor < ?2 "
       "LIMIT ?3"},
      {&history_up_,
       "SELECT cursor, job_id, finished_ms, bytes, hash FROM history WHERE cursor > ?1 AND cursor < ?2 "
       "ORDER BY cursor LIMIT ?3"},
      {&history_down_,
       "SELECT cursor, job_id, finished_ms, bytes, hash FROM history WHERE cursor > ?1 AND cursor < ?2 "
       "ORDER BY cursor DESC LIMIT ?3"},
  };
  for (const auto& [statement, sql] : statements) {
    auto prepared = connection_.prepare(sql);
    if (!prepared) return prepared.error();
    *statement = std::move(*prepared);
  }
  return {};
}

Result<Extent> SqliteReader::extent() {
  const std::lock_guard lock(mutex_);
  return load_extent(select_extent_);
}

Result<Hash> SqliteReader::hash_at(std::uint64_t seq) {
  const std::lock_guard lock(mutex_);
  const auto extent = load_extent(select_extent_);
  if (!extent) return extent.error();
  if (seq == extent->anchor_seq) return extent->anchor_hash;
  if (seq < extent->anchor_seq || seq > extent->head.seq)
    return not_in_log(seq, extent->anchor_seq + 1, extent->head.seq);
  const auto row = select_hash_.bind(1, seq).step();
  if (!row) return corrupt_record(seq, row.error().message);
  if (!*row) return corrupt_record(seq, "missing");
  const auto hash = to_hash(select_hash_.bytes(0));
  select_hash_.reset();
  if (!hash) return corrupt_record(seq, "its hash is damaged");
  return *hash;
}

Result<Chunk> SqliteReader::read(std::uint64_t from_seq, const Hash& previous) {
  const std::lock_guard lock(mutex_);
  if (auto ok = begin_.run(); !ok) return ok.error();
  auto chunk = read_locked(from_seq, previous);
  select_records_.reset();
  std::ignore = end_.run();  // nothing was written, so nothing can be lost
  return chunk;
}

Result<Chunk> SqliteReader::read_locked(std::uint64_t from_seq, const Hash& previous) {
  const auto extent = load_extent(select_extent_);
  if (!extent) return extent.error();
  if (from_seq <= extent->anchor_seq || from_seq > extent->head.seq + 1) {
    return not_in_log(from_seq, extent->anchor_seq + 1, extent->head.seq);
  }
  Chunk chunk;
  chunk.last_hash = previous;
  std::size_t bytes = 0;
  select_records_.bind(1, from_seq).bind(2, std::int64_t{kChunkRecords});
  for (std::uint64_t seq = from_seq;
       seq <= extent->head.seq && chunk.records.size() < kChunkRecords && bytes < kChunkBytes; ++seq) {
    auto record = checked_row(seq, chunk.last_hash);
    if (!record) {
      chunk.damage = record.error();
      return chunk;
    }
    bytes += record->payload.size();
    chunk.records.push_back(std::move(*record));
  }
  return chunk;
}

// Reads the next row, which must be `seq`. `hash` is the hash of the record before it and becomes its own.
Result<Record> SqliteReader::checked_row(std::uint64_t seq, Hash& hash) {
  const auto row = select_records_.step();
  if (!row) {
    // A read error of the system says nothing about the stored data.
    if (row.error().code != ErrorCode::kCorrupt) return row.error();
    return corrupt_record(seq, row.error().message);
  }
  if (!*row) return corrupt_record(seq, "missing, and no row comes after it");
  const auto stored_seq = select_records_.integer(0);
  const auto epoch = narrowed<std::uint64_t>(select_records_.integer(1));
  const auto time_ms = select_records_.integer(2);
  const auto kind = narrowed<std::uint16_t>(select_records_.integer(3));
  const auto version = narrowed<std::uint16_t>(select_records_.integer(4));
  const auto payload = select_records_.bytes(5);
  const auto stored_hash = to_hash(select_records_.bytes(6));
  if (!stored_seq || static_cast<std::uint64_t>(*stored_seq) != seq) {
    return corrupt_record(seq, fmt::format("missing; in its place is {}", stored_seq.value_or(-1)));
  }
  if (!epoch || !time_ms || !kind || !version || !payload || !stored_hash)
    return corrupt_record(seq, "the row is damaged");
  Record record{seq, *epoch, {*time_ms}, *kind, *version, std::string(*payload)};
  if (chain_.next(hash, record) != *stored_hash) return corrupt_record(seq, "its hash does not fit the chain");
  hash = *stored_hash;
  return record;
}

Statement& SqliteReader::history_statement(const HistoryQuery& query) {
  if (query.job_id) return history_of_job_.bind(4, *query.job_id);
  return query.newest_first ? history_down_ : history_up_;
}

Result<std::vector<HistoryRow>> SqliteReader::history(const HistoryQuery& query) {
  const std::lock_guard lock(mutex_);
  Statement& select = history_statement(query);
  select.bind(1, std::min(query.after, kMaxInteger)).bind(2, std::min(query.before, kMaxInteger));
  select.bind(3, std::min<std::uint64_t>(query.limit, kMaxInteger));
  std::vector<HistoryRow> rows;
  while (true) {
    const auto row = select.step();
    if (!row) return row.error();
    if (!*row) return rows;
    auto found = checked_history_row(select);
    if (!found) {
      select.reset();
      return found.error();
    }
    rows.push_back(std::move(*found));
  }
}

Result<void> SqliteReader::check_foreign() {
  const std::lock_guard lock(mutex_);
  // Names that begin with sqlite_ are SQLite's own: the index of a unique column, statistics.
  auto foreign = connection_.prepare(
      "SELECT CAST(type || ' ' || name AS BLOB) FROM sqlite_schema WHERE NOT (type = 'table' AND name IN ('records', "
      "'history', 'extent')) AND NOT (type IN ('table', 'index') AND name GLOB 'sqlite_*') LIMIT 1");
  if (!foreign) return foreign.error();
  const auto row = foreign->step();
  if (!row) return row.error();
  if (*row)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the database has this, which is not berth's: {}", foreign->bytes(0).value_or("a thing"))};
  if (auto ok = begin_.run(); !ok) return ok.error();
  auto rows = check_foreign_rows();
  std::ignore = end_.run();  // nothing was written, so nothing can be lost
  return rows;
}

Result<void> SqliteReader::check_foreign_rows() {
  const auto extent = load_extent(select_extent_);
  if (!extent) return extent.error();
  const auto last = connection_.integer("SELECT coalesce(max(seq), 0) FROM records");
  if (!last) return last.error();
  const auto first = connection_.integer("SELECT coalesce(min(seq), 0) FROM records");
  if (!first) return first.error();
  if (*last > static_cast<std::int64_t>(extent->head.seq))
    return corrupt_record(static_cast<std::uint64_t>(*last),
                          fmt::format("a row behind the end of the log, which is {}", extent->head.seq));
  if (*first != 0 && *first <= static_cast<std::int64_t>(extent->anchor_seq))
    return corrupt_record(static_cast<std::uint64_t>(*first),
                          fmt::format("a row before the begin of the log, which is {}", extent->anchor_seq + 1));
  return {};
}

Result<void> SqliteReader::check_pages() {
  const std::lock_guard lock(mutex_);
  auto check = connection_.prepare("SELECT CAST(quick_check AS BLOB) FROM pragma_quick_check(1)");
  if (!check) return check.error();
  const auto row = check->step();
  if (!row) return row.error();
  const auto verdict = *row ? check->bytes(0) : std::nullopt;
  if (verdict != std::string_view("ok")) {
    std::string words(verdict.value_or("no answer"));
    words.erase(0, words.starts_with("*** ") ? words.find('\n') + 1 : 0);
    return Error{ErrorCode::kCorrupt, fmt::format("page check: {}", words)};
  }
  return {};
}

}  // namespace berth::store

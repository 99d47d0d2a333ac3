#include "store/sqlite_writer.h"

#include <fmt/format.h>

#include <tuple>

namespace berth::store {

Result<std::unique_ptr<SqliteWriter>> SqliteWriter::open(const std::string& path, const char* vfs) {
  auto connection = Connection::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs);
  if (!connection) return connection.error();
  std::unique_ptr<SqliteWriter> writer(new SqliteWriter);
  writer->connection_ = std::move(*connection);
  if (auto ok = prepare_writer(writer->connection_); !ok) return ok.error();
  if (auto ok = writer->prepare_statements(); !ok) return ok.error();
  const auto note_pages = [](void* pages, sqlite3*, const char*, int count) {
    *static_cast<int*>(pages) = count;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(writer->connection_.raw(), note_pages, &writer->wal_pages_);
  return writer;
}

Result<void> SqliteWriter::prepare_statements() {
  const std::pair<Statement*, const char*> statements[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&rollback_, "ROLLBACK"},
      {&select_extent_, kSelectExtent},
      {&compare_and_set_,
       "UPDATE extent SET head_seq = ?1, epoch = ?2, head_hash = ?3, anchor_seq = ?4, anchor_hash = ?5, checksum = ?6 "
       "WHERE id = 1 AND head_seq = ?7 AND epoch = ?8 AND checksum = ?9"},
      {&select_last_, "SELECT seq, epoch, hash FROM records ORDER BY seq DESC LIMIT 1"},
      {&insert_record_, "INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
      {&insert_history_, "INSERT INTO history (job_id, finished_ms, bytes, hash) VALUES (?1, ?2, ?3, ?4)"},
      {&cut_, "DELETE FROM records WHERE seq <= ?1"},
  };
  for (const auto& [statement, sql] : statements) {
    auto prepared = connection_.prepare(sql);
    if (!prepared) return prepared.error();
    *statement = std::move(*prepared);
  }
  return {};
}

Result<Extent> SqliteWriter::load() {
  auto extent = load_extent(select_extent_);
  if (!extent) return extent;
  if (auto ok = check_last_row(*extent); !ok) return ok.error();
  return extent;
}

Result<void> SqliteWriter::check_last_row(const Extent& extent) {
  const std::uint64_t expected = extent.head.seq;
  const auto row = select_last_.step();
  if (!row) return corrupt_record(expected, row.error().message);
  if (!*row) {
    if (expected == extent.anchor_seq) return {};
    return corrupt_record(expected, "missing: the log has no rows");
  }
  const auto seq = select_last_.integer(0);
  const auto epoch = select_last_.integer(1);
  const auto hash = to_hash(select_last_.bytes(2));
  select_last_.reset();
  if (!seq || static_cast<std::uint64_t>(*seq) != expected) {
    return corrupt_record(expected, fmt::format("it should be the last row, but that is {}", seq.value_or(-1)));
  }
  if (!hash || *hash != extent.head.hash) return corrupt_record(expected, "its hash is not that of the log's head");
  if (!epoch || static_cast<std::uint64_t>(*epoch) > extent.head.epoch)
    return corrupt_record(expected, "its epoch is wrong");
  return {};
}

template <class Body>
Result<void> SqliteWriter::in_transaction(const Body& body) {
  if (auto ok = begin_.run(); !ok) return ok;
  Result<void> done = body();
  if (done) done = commit_.run();
  // A failed commit may have rolled back already. If the rollback fails, too, nothing is left to do: the returned error
  // makes the log unusable, and the next open drops the unfinished transaction.
  if (!done && sqlite3_get_autocommit(connection_.raw()) == 0) std::ignore = rollback_.run();
  return done;
}

Result<void> SqliteWriter::append(const Extent& from, const Extent& to, std::span<const Record> records,
                                  std::span<const Hash> hashes, std::span<const HistoryRow> finished_jobs) {
  return in_transaction([&]() -> Result<void> {
    if (auto ok = compare_and_set(from, to); !ok) return ok;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (auto ok = insert(records[i], hashes[i]); !ok) return ok;
    }
    for (const HistoryRow& row : finished_jobs) {
      if (auto ok = insert(row); !ok) return ok;
    }
    return {};
  });
}

Result<void> SqliteWriter::set_epoch(const Extent& from, const Extent& to) {
  return in_transaction([&] { return compare_and_set(from, to); });
}

Result<void> SqliteWriter::cut(const Extent& from, const Extent& to) {
  return in_transaction([&]() -> Result<void> {
    if (auto ok = compare_and_set(from, to); !ok) return ok;
    return cut_.bind(1, to.anchor_seq).run();
  });
}

Result<void> SqliteWriter::compare_and_set(const Extent& from, const Extent& to) {
  const Hash before = checksum_of(from);
  const Hash after = checksum_of(to);
  compare_and_set_.bind(1, to.head.seq).bind(2, to.head.epoch).bind_bytes(3, bytes_of(to.head.hash));
  compare_and_set_.bind(4, to.anchor_seq).bind_bytes(5, bytes_of(to.anchor_hash)).bind_bytes(6, bytes_of(after));
  compare_and_set_.bind(7, from.head.seq).bind(8, from.head.epoch).bind_bytes(9, bytes_of(before));
  if (auto ok = compare_and_set_.run(); !ok) return ok;
  if (connection_.changes() == 1) return {};
  const auto stored = load_extent(select_extent_);
  if (!stored) return stored.error();
  return refused_append(stored->head, from.head.epoch, from.head.seq + 1);
}

Result<void> SqliteWriter::insert(const Record& record, const Hash& hash) {
  insert_record_.bind(1, record.seq).bind(2, record.epoch).bind(3, record.time.ms);
  insert_record_.bind(4, std::int64_t{record.kind}).bind(5, std::int64_t{record.version});
  insert_record_.bind_bytes(6, record.payload).bind_bytes(7, bytes_of(hash));
  return insert_record_.run();
}

Result<void> SqliteWriter::insert(const HistoryRow& row) {
  const Hash hash = hash_of(row);
  insert_history_.bind(1, row.job_id).bind(2, row.finished.ms).bind_bytes(3, row.bytes).bind_bytes(4, bytes_of(hash));
  auto done = insert_history_.run();
  if (!done && done.error().code == ErrorCode::kConflict) {
    return conflict(fmt::format("append: job {} is already in the history", row.job_id));
  }
  return done;
}

Result<void> SqliteWriter::checkpoint_wal(bool everything) {
  const int mode = everything ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int pages = 0;
  int moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(connection_.raw(), nullptr, mode, &pages, &moved);
  if (code == SQLITE_BUSY && !everything) {
    wal_pages_left_ = wal_pages_;  // nothing was moved; the next checkpoint can do it
    return {};
  }
  if (code != SQLITE_OK) return sqlite_error(connection_.raw(), code);
  // Once everything is moved, the next commit restarts the write-ahead log and its page count.
  wal_pages_left_ = moved >= pages ? 0 : pages;
  wal_pages_ = wal_pages_left_;
  return {};
}

}  // namespace berth::store

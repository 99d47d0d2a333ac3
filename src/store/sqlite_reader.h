#pragma once
// The second connection, for reading only. Readers never wait for the writer, nor the writer for them. It sees only
// durable records: SQLite shows a commit to other connections only after its sync has returned. Any thread may call it.

#include <memory>
#include <mutex>
#include <string>

#include "store/hash_chain.h"
#include "store/sqlite_connection.h"
#include "store/sqlite_schema.h"

namespace berth::store {

// Consecutive records, all checked against the chain, read in one short transaction. A long transaction would prevent
// the write-ahead log from being emptied. Empty at the end of the log.
struct Chunk {
  std::vector<Record> records;
  Hash last_hash{};             // hash of the last record
  std::optional<Error> damage;  // the damage of the record after them, if any
};

class SqliteReader {
 public:
  static Result<std::unique_ptr<SqliteReader>> open(const std::string& path, const char* vfs);

  Result<Extent> extent();
  // Returns the hash of a record that is kept, or of the last record that was dropped.
  Result<Hash> hash_at(std::uint64_t seq);
  // Reads from from_seq on. `previous` is the hash of the record before it.
  Result<Chunk> read(std::uint64_t from_seq, const Hash& previous);
  Result<std::vector<HistoryRow>> history(const HistoryQuery& query);
  // Returns what is in the database and of no log: a row before its begin or behind its end, a table, trigger or view.
  Result<void> check_foreign();
  // Runs SQLite's own check of every page; it reads the whole database.
  Result<void> check_pages();

 private:
  SqliteReader() = default;
  Result<void> prepare_statements();
  Result<void> check_foreign_rows();
  Result<Chunk> read_locked(std::uint64_t from_seq, const Hash& previous);
  Result<Record> checked_row(std::uint64_t seq, Hash& hash);
  Statement& history_statement(const HistoryQuery& query);

  std::mutex mutex_;
  Connection connection_;
  HashChain chain_;
  Statement begin_, end_;
  Statement select_extent_, select_hash_, select_records_;
  Statement history_of_job_, history_up_, history_down_;
};

}  // namespace berth::store

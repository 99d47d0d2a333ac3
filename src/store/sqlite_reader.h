#pragma once
// The second connection, which only reads, so that readers never wait for the writer nor it for them. It sees what is
// durable and nothing else: SQLite shows a commit to others only after its sync has returned. Any thread may call it.

#include <memory>
#include <mutex>
#include <string>

#include "store/hash_chain.h"
#include "store/sqlite_connection.h"
#include "store/sqlite_schema.h"

namespace berth::store {

// A run of consecutive records, all checked against the chain, read in one short transaction: a long one would keep the
// write-ahead log from being emptied. Empty at the end of the log.
struct Chunk {
  std::vector<Record> records;
  Hash last_hash{};             // of the last of them
  std::optional<Error> damage;  // what is wrong with the record after them
};

class SqliteReader {
 public:
  static Result<std::unique_ptr<SqliteReader>> open(const std::string& path, const char* vfs);

  Result<Extent> extent();
  // Of a record that is kept, or of the last one that was cut off.
  Result<Hash> hash_at(std::uint64_t seq);
  // From from_seq on; `previous` is the hash of the record before it.
  Result<Chunk> read(std::uint64_t from_seq, const Hash& previous);
  Result<std::vector<HistoryRow>> history(const HistoryQuery& query);
  // SQLite's own check of every page. Reads the whole database.
  Result<void> check_pages();

 private:
  SqliteReader() = default;
  Result<void> prepare_statements();
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

#pragma once
// The only connection that writes the log's database and moves its write-ahead log into it. SQLite 3.40.1 of Debian 12
// can damage a database if two connections do either at the same time (the WAL-reset bug). So there is never a second
// one.

#include <memory>
#include <string>

#include "store/log.h"
#include "store/sqlite_connection.h"
#include "store/sqlite_schema.h"

namespace berth::store {

class SqliteWriter {
 public:
  static Result<std::unique_ptr<SqliteWriter>> open(const std::string& path, const char* vfs);

  // Returns where the log begins and ends, after a check that its last row is the stated one.
  Result<Extent> load();

  // Compares the stored extent with `from`, sets it to `to`, and adds the rows, in one transaction. Error kConflict,
  // and nothing is kept: `from` is not the stored extent, or a job is already in the history.
  Result<void> append(const Extent& from, const Extent& to, std::span<const Record> records,
                      std::span<const Hash> hashes, std::span<const HistoryRow> finished_jobs);
  // Sets only the extent, for a new epoch.
  Result<void> set_epoch(const Extent& from, const Extent& to);
  // Drops the records up to to.anchor_seq.
  Result<void> cut(const Extent& from, const Extent& to);

  // Moves the content of the write-ahead log into the database and syncs both, as far as no reader still needs it.
  // everything: wait for readers, and leave the write-ahead log empty.
  Result<void> checkpoint_wal(bool everything);
  // Returns true if the write-ahead log has grown by `pages` since it was last moved.
  bool wal_is_due(int pages) const { return wal_pages_ >= wal_pages_left_ + pages; }

  Connection& connection() { return connection_; }

 private:
  SqliteWriter() = default;
  Result<void> prepare_statements();
  template <class Body>
  Result<void> in_transaction(const Body& body);
  Result<void> compare_and_set(const Extent& from, const Extent& to);
  Result<void> insert(const Record& record, const Hash& hash);
  Result<void> insert(const HistoryRow& row);
  Result<void> check_last_row(const Extent& extent);

  Connection connection_;
  Statement begin_, commit_, rollback_;
  Statement select_extent_, compare_and_set_, select_last_;
  Statement insert_record_, insert_history_, cut_;
  int wal_pages_ = 0;       // at the last commit
  int wal_pages_left_ = 0;  // pages that the last checkpoint_wal had to leave
};

}  // namespace berth::store

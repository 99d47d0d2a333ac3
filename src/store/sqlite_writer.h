#pragma once
// The one connection that writes the log's database and moves its write-ahead log into it. Debian 12's SQLite 3.40.1
// can damage a database when two connections do either at once (the WAL-reset bug), so there is never a second one.

#include <memory>
#include <string>

#include "store/log.h"
#include "store/sqlite_connection.h"
#include "store/sqlite_schema.h"

namespace berth::store {

class SqliteWriter {
 public:
  static Result<std::unique_ptr<SqliteWriter>> open(const std::string& path, const char* vfs);

  // Where the log begins and ends, after checking that its last row is the one it says.
  Result<Extent> load();

  // One transaction: compares the stored extent with `from`, sets it to `to`, and adds the rows. kConflict where `from`
  // is not what is stored or a job is already in the history; nothing is kept then.
  Result<void> append(const Extent& from, const Extent& to, std::span<const Record> records,
                      std::span<const Hash> hashes, std::span<const HistoryRow> retired);
  // Moves the extent alone: a new epoch.
  Result<void> set_epoch(const Extent& from, const Extent& to);
  // Drops the records up to to.anchor_seq.
  Result<void> cut(const Extent& from, const Extent& to);

  // Moves what is in the write-ahead log into the database and syncs both, as far as no reader still needs it.
  // everything: wait for readers, and leave the write-ahead log empty.
  Result<void> checkpoint_wal(bool everything);
  // Whether it has grown by `pages` since it was last moved.
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
  int wal_pages_ = 0;       // as of the last commit
  int wal_pages_left_ = 0;  // what the last checkpoint_wal had to leave
};

}  // namespace berth::store

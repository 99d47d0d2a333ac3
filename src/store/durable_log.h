#pragma once
// A log that outlives its server, and where it is: in SQLite in the data directory, or in a PostgreSQL that several
// servers can reach. What both can do beyond the contract of log.h.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/log.h"

namespace berth::store {

class DurableLog : public Log {
 public:
  // Returns the hash of a record that is kept, or of the last one that was dropped. Error kNotFound: there is none.
  virtual Result<Hash> hash_at(std::uint64_t seq) const = 0;

  // Warnings of the opening for an operator: the end of the log could not be compared with what was acknowledged.
  virtual const std::vector<std::string>& warnings() const = 0;

  // Returns what is in the database and of no log, as an error: a row before its begin or behind its end, a table,
  // trigger or view.
  virtual Result<void> check_foreign() const = 0;

  // Runs the database's own check of every page, which also finds damage in pages without records. PostgreSQL has none
  // that an ordinary role may run: there it checks nothing, and returns success (docs/store.md).
  virtual Result<void> check_pages() const = 0;
};

struct LogPlace {
  std::string directory;                     // the data directory
  std::string database;                      // postgresql://...; empty: the log is in the directory
  std::uint32_t fsync_delay_ms = 0;          // injected, for benchmarks
  std::int64_t commit_deadline_ms = 10'000;  // of a database: a statement without an answer by then ends the server
};

// Opens the log of a server for writing, and creates it if missing. Errors: as SqliteLog and PostgresLog say. Error
// kConflict: the log of this directory is somewhere else: in a database, or still in the directory.
Result<std::unique_ptr<DurableLog>> open_log(const LogPlace& place);

// Opens a log for reading, even while a server writes it. `where` is a data directory or postgresql://...
Result<std::unique_ptr<DurableLog>> open_log_read_only(const std::string& where);

// Error kConflict: the log of this directory is in a database, and what may lie in the directory is an older one.
Result<void> check_log_is_here(const std::string& directory);

}  // namespace berth::store

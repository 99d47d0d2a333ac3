#include "store/sqlite_schema.h"

#include <fmt/format.h>

#include "store/hash_chain.h"

namespace berth::store {

namespace {

constexpr std::int64_t kApplicationId = 0x62727468;  // "brth", so that `file` and berth recognize the database

// FULL syncs the write-ahead log with each commit. SqliteWriter makes the checkpoints of it, because the automatic ones
// of SQLite hide their errors.
constexpr const char* kWriterSettings =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cell_size_check = ON;"
    "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA journal_size_limit = 67108864;"
    "PRAGMA cache_size = -8000";
constexpr const char* kReaderSettings =
    "PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;"
    "PRAGMA cache_size = -8000";

constexpr const char* kCreate =
    "CREATE TABLE records (seq INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, time_ms INTEGER NOT NULL, "
    "  kind INTEGER NOT NULL, version INTEGER NOT NULL, payload BLOB NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE history (cursor INTEGER PRIMARY KEY, job_id INTEGER NOT NULL UNIQUE, finished_ms INTEGER NOT NULL, "
    "  bytes BLOB NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE extent (id INTEGER PRIMARY KEY CHECK (id = 1), head_seq INTEGER NOT NULL, epoch INTEGER NOT NULL, "
    "  head_hash BLOB NOT NULL, anchor_seq INTEGER NOT NULL, anchor_hash BLOB NOT NULL, checksum BLOB NOT NULL) "
    "STRICT;";

Result<void> insert_empty_extent(Connection& connection) {
  auto insert = connection.prepare("INSERT INTO extent VALUES (1, 0, 0, ?1, 0, ?1, ?2)");
  if (!insert) return insert.error();
  const Extent empty;
  const Hash checksum = checksum_of(empty);
  insert->bind_bytes(1, bytes_of(empty.head.hash)).bind_bytes(2, bytes_of(checksum));
  return insert->run();
}

Result<void> create_tables(Connection& connection) {
  if (auto ok = connection.execute("BEGIN IMMEDIATE"); !ok) return ok;
  auto done = connection.execute(kCreate);
  if (done) done = insert_empty_extent(connection);
  if (done) done = connection.execute(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
  if (done) done = connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
  if (done) done = connection.execute("COMMIT");
  return done;
}

Result<void> check_version(Connection& connection) {
  const auto application = connection.integer("PRAGMA application_id");
  if (!application) return application.error();
  if (*application != kApplicationId) return invalid("this database is not a berth log");
  const auto version = connection.integer("PRAGMA user_version");
  if (!version) return version.error();
  if (*version == kSchemaVersion) return {};
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("the log has schema version {}, this berth knows {}: use the berth that wrote it, or a newer one",
                  *version, kSchemaVersion)};
}

}  // namespace

Result<void> prepare_writer(Connection& connection) {
  // Checked before any setting: a database of another program must not even be switched to WAL.
  const auto tables = connection.integer("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tables.error();
  if (*tables > 0) {
    if (auto ok = check_version(connection); !ok) return ok;
  }
  // berth has no triggers; one that is found in the database is another program's, and must not change what is written.
  sqlite3_db_config(connection.raw(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  if (auto ok = connection.execute(kWriterSettings); !ok) return ok;
  return *tables > 0 ? Result<void>() : create_tables(connection);
}

Result<void> prepare_reader(Connection& connection) {
  // The last connection to close would move the write-ahead log into the database. Only the writer may do that.
  sqlite3_db_config(connection.raw(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (auto ok = connection.execute(kReaderSettings); !ok) return ok;
  return check_version(connection);
}

Result<Extent> load_extent(Statement& select_extent) {
  const auto row = select_extent.step();
  if (!row) return row.error();
  const Error damaged{ErrorCode::kCorrupt, "the row that says where the log begins and ends is damaged"};
  if (!*row) return damaged;
  const auto head_seq = select_extent.integer(0);
  const auto epoch = select_extent.integer(1);
  const auto head_hash = to_hash(select_extent.bytes(2));
  const auto anchor_seq = select_extent.integer(3);
  const auto anchor_hash = to_hash(select_extent.bytes(4));
  const auto checksum = to_hash(select_extent.bytes(5));
  select_extent.reset();
  if (!head_seq || !epoch || !head_hash || !anchor_seq || !anchor_hash || !checksum) return damaged;
  const Extent extent{{static_cast<std::uint64_t>(*head_seq), static_cast<std::uint64_t>(*epoch), *head_hash},
                      static_cast<std::uint64_t>(*anchor_seq),
                      *anchor_hash};
  if (checksum_of(extent) != *checksum) return damaged;
  return extent;
}

}  // namespace berth::store

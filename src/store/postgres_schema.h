#pragma once
// The tables of a log on PostgreSQL, in the schema `berth` of its database, and what is asked of the server and the
// role before they are used. The row `berth.log` says whose log it is, and has its extent (extent.h).

#include <cstdint>
#include <optional>
#include <string>

#include "store/extent.h"
#include "store/postgres_connection.h"

namespace berth::store {

inline constexpr std::int64_t kPostgresSchemaVersion = 1;

// What the database says of the log in it.
struct PostgresLogRow {
  std::string log_id;
  bool is_unfinished = false;  // a copy that did not come to its end
  Extent extent;
  std::uint64_t history_rows = 0;  // as of the same moment; not with for_update
};

// Prepares a new connection: settings of the connection, and no pooler in between. Errors: kUnsupported: an older
// PostgreSQL, or a pooler that gives each transaction another process.
Result<void> prepare_connection(PostgresConnection& connection, PostgresUse use);

// What is asked of a server that a log is written to. `servers`: how many the address names. Errors, with what to do:
// kUnsupported: fsync or synchronous_commit is off; kUnavailable: several servers and no synchronous standby, which
// passes where one of them has just taken over.
Result<void> check_commits(PostgresConnection& connection, std::size_t servers);

// Returns nothing where the database has no log. Errors: kUnsupported: another schema version; kDenied: no right to
// read it; kCorrupt: the row is damaged. `for_update` locks the row until the end of the transaction.
Result<std::optional<PostgresLogRow>> load_log_row(PostgresConnection& connection, bool for_update = false);

// Creates the tables, and the schema where it is not there yet, for a log of this id. Errors: kConflict: one of them is
// there already, perhaps since a moment ago, by another server or by an old connection of this one: load the row again;
// kDenied: no right to, with the command that grants it; kUnavailable: it is not known whether a standby has it.
Result<void> create_postgres_log(PostgresConnection& connection, const std::string& log_id, bool unfinished);

// Error kDenied: the role may not do all that a server does, with the command that grants it.
Result<void> check_rights(PostgresConnection& connection, std::size_t servers);

// Errors: kCorrupt: a trigger, rule or policy on one of the tables, a table that is not berth's, or (rows) a row
// outside of the log; kUnsupported: a table that does not outlive a crash.
Result<void> check_foreign_objects(PostgresConnection& connection);
Result<void> check_foreign_rows(PostgresConnection& connection);

}  // namespace berth::store

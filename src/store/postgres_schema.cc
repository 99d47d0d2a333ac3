#include "store/postgres_schema.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace berth::store {

namespace {

constexpr int kOldestServer = 150'000;

// search_path: no object of another schema is ever meant. The plans: pages of a table are read in the order of its key,
// and a table without statistics, as after a copy, would be sorted for each page; a plan without a choice looks dear,
// and is not to be compiled (jit) for that. The rest are settings that a role or a database may have, and under which a
// statement of berth would do something else or end early. client_min_messages: a role that hears no warnings would not
// hear either that a commit is on this server alone. The functions are named with their schema, because a role may have
// a search_path with others of that name.
constexpr const char* kSettings =
    "SELECT pg_catalog.pg_backend_pid()::bigint, pg_catalog.set_config('search_path', 'pg_catalog', false), "
    "  pg_catalog.set_config('enable_seqscan', 'off', false), pg_catalog.set_config('enable_bitmapscan', 'off', "
    "false), "
    "  pg_catalog.set_config('enable_sort', 'off', false), pg_catalog.set_config('jit', 'off', false), "
    "  pg_catalog.set_config('default_transaction_isolation', 'read committed', false), "
    "  pg_catalog.set_config('statement_timeout', '0', false), pg_catalog.set_config('lock_timeout', '0', false), "
    "  pg_catalog.set_config('idle_session_timeout', '0', false), "
    "  pg_catalog.set_config('idle_in_transaction_session_timeout', '0', false), "
    "  pg_catalog.set_config('client_min_messages', 'notice', false), "
    "  pg_catalog.set_config('row_security', 'off', false), "
    "  pg_catalog.set_config('default_transaction_read_only', $1, false)";

constexpr std::array<const char*, 2> kCreateSchema{
    "CREATE SCHEMA berth",
    // Only the role of the server, and roles that its owner grants it to.
    "REVOKE ALL ON SCHEMA berth FROM PUBLIC",
};

constexpr std::array<const char*, 4> kCreateTables{
    "CREATE TABLE berth.log (id integer PRIMARY KEY CHECK (id = 1), schema_version bigint NOT NULL, "
    "  log_id text NOT NULL, unfinished boolean NOT NULL, head_seq bigint NOT NULL, epoch bigint NOT NULL, "
    "  head_hash bytea NOT NULL, anchor_seq bigint NOT NULL, anchor_hash bytea NOT NULL, checksum bytea NOT NULL)",
    "CREATE TABLE berth.records (seq bigint PRIMARY KEY, epoch bigint NOT NULL, time_ms bigint NOT NULL, "
    "  kind bigint NOT NULL, version bigint NOT NULL, payload bytea NOT NULL, hash bytea NOT NULL)",
    "CREATE TABLE berth.history (cursor bigint PRIMARY KEY, job_id bigint NOT NULL UNIQUE, finished_ms bigint NOT "
    "NULL, "
    "  bytes bytea NOT NULL, hash bytea NOT NULL)",
    "CREATE TABLE berth.checkpoints (seq bigint, part bigint, parts bigint NOT NULL, head_hash bytea NOT NULL, "
    "  checksum bytea NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (seq, part))",
};

constexpr const char* kTables = "'log', 'records', 'history', 'checkpoints'";

// Outside of a transaction: says the role that lacks a right.
Error with_grant(PostgresConnection& connection, Error error, const char* grant) {
  if (error.code != ErrorCode::kDenied) return error;
  const auto role = connection.run("SELECT quote_ident(current_user)");
  error.message += fmt::format(". {} {}", grant, role ? role->text(0, 0) : "ROLE");
  return error;
}

}  // namespace

Result<void> prepare_connection(PostgresConnection& connection, PostgresUse use) {
  if (connection.server_version() < kOldestServer) {
    return Error{ErrorCode::kUnsupported, fmt::format("{}: it is PostgreSQL {}, and berth needs 15 or newer",
                                                      connection.shown(), connection.server_version() / 10'000)};
  }
  // A pooler answers with a process of its own making, and each transaction may run in another one: then neither
  // settings nor what was read before hold.
  const auto process = connection.run(kSettings, PostgresValues().text(use == PostgresUse::kServe ? "off" : "on"));
  if (!process) return process.error();
  if (process->integer(0, 0) != connection.server_process()) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{}: a pooler (such as PgBouncer) is in between; name the address of PostgreSQL itself. One "
                    "server needs four connections",
                    connection.shown())};
  }
  // A statement that waits for a lock of the server before ends with the connection, instead of taking the lock later.
  // Where the server's system has no such check (Windows), it is done without.
  constexpr const char* kEndWithConnection = "SELECT set_config('client_connection_check_interval', '1s', false)";
  if (const auto set = connection.run(kEndWithConnection); !set && connection.lost()) return set.error();
  return {};
}

Result<void> check_commits(PostgresConnection& connection, std::size_t servers) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::kUnsupported, connection.shown() + ": " + why};
  };
  const auto rows = connection.run(
      "SELECT current_setting('fsync'), current_setting('synchronous_commit'), "
      "current_setting('synchronous_standby_names'), quote_ident(current_user)");
  if (!rows) return rows.error();
  const std::string commit = rows->text(0, 1);
  if (rows->text(0, 0) != "on")
    return refused("fsync is off, so a power cut loses what was acknowledged. ALTER SYSTEM SET fsync = on, and reload");
  if (commit == "off") {
    return refused(
        fmt::format("synchronous_commit is off, so a crash loses what was acknowledged. ALTER ROLE {} SET "
                    "synchronous_commit = on",
                    rows->text(0, 3)));
  }
  if (servers == 1) return {};
  if (commit != "on" && commit != "remote_apply") {
    return refused(
        fmt::format("synchronous_commit is {}, so a commit does not wait until a standby has it on its disk. "
                    "ALTER ROLE {} SET synchronous_commit = on",
                    commit, rows->text(0, 3)));
  }
  if (rows->text(0, 2).empty()) {
    // As on a standby that has just taken over, until it has a standby of its own.
    return Error{ErrorCode::kUnavailable,
                 connection.shown() +
                     ": synchronous_standby_names is empty, so what is acknowledged may be missing on the other server "
                     "when it takes over. It is tried again; ALTER SYSTEM SET synchronous_standby_names = 'NAME', and "
                     "reload; or name one server alone"};
  }
  return {};
}

Result<std::optional<PostgresLogRow>> load_log_row(PostgresConnection& connection, bool for_update) {
  const auto there = connection.run("SELECT to_regclass('berth.log') IS NOT NULL");
  if (!there) return with_grant(connection, there.error(), "GRANT USAGE ON SCHEMA berth TO");
  if (!there->is_true(0, 0)) return std::optional<PostgresLogRow>();
  const auto rows = connection.run(
      for_update ? "SELECT schema_version, log_id, unfinished, head_seq, epoch, head_hash, anchor_seq, anchor_hash, "
                   "checksum, 0::bigint FROM berth.log WHERE id = 1 FOR UPDATE"
                 : "SELECT schema_version, log_id, unfinished, head_seq, epoch, head_hash, anchor_seq, anchor_hash, "
                   "checksum, (SELECT coalesce(max(cursor), 0) FROM berth.history) FROM berth.log WHERE id = 1");
  if (!rows) {
    if (connection.sqlstate() == "42703")
      return invalid(connection.shown() + ": the schema berth of this database is not a log of berth");
    return with_grant(connection, rows.error(),
                      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA berth TO");
  }
  const Error damaged{ErrorCode::kCorrupt,
                      connection.shown() + ": the row that says where the log begins and ends is damaged"};
  const auto version = rows->integer(0, 0);
  if (!version) return damaged;
  if (*version != kPostgresSchemaVersion) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: the log has schema version {}, this berth knows {}: use the berth that wrote it, or "
                             "{}",
                             connection.shown(), *version, kPostgresSchemaVersion,
                             *version > kPostgresSchemaVersion
                                 ? "a newer one"
                                 : "copy the log with it to a directory, and with this one to a new database (berth "
                                   "store copy)")};
  }
  const auto head_seq = rows->integer(0, 3);
  const auto epoch = rows->integer(0, 4);
  const auto head_hash = to_hash(rows->bytes(0, 5));
  const auto anchor_seq = rows->integer(0, 6);
  const auto anchor_hash = to_hash(rows->bytes(0, 7));
  const auto checksum = to_hash(rows->bytes(0, 8));
  if (!head_seq || !epoch || !head_hash || !anchor_seq || !anchor_hash || !checksum) return damaged;
  PostgresLogRow row;
  row.log_id = rows->text(0, 1);
  row.is_unfinished = rows->is_true(0, 2);
  row.extent = {{static_cast<std::uint64_t>(*head_seq), static_cast<std::uint64_t>(*epoch), *head_hash},
                static_cast<std::uint64_t>(*anchor_seq),
                *anchor_hash};
  if (checksum_of(row.extent) != *checksum) return damaged;
  row.history_rows = static_cast<std::uint64_t>(rows->integer(0, 9).value_or(0));
  return std::optional(std::move(row));
}

Result<void> create_postgres_log(PostgresConnection& connection, const std::string& log_id, bool unfinished) {
  const auto there = connection.run("SELECT to_regnamespace('berth') IS NOT NULL");
  if (!there) return there.error();
  const bool has_schema = there->is_true(0, 0);  // an administrator made it for this role
  if (auto ok = connection.run("BEGIN"); !ok) return ok.error();
  const auto create = [&]() -> Result<void> {
    std::vector<const char*> statements(kCreateTables.begin(), kCreateTables.end());
    if (!has_schema) statements.insert(statements.begin(), kCreateSchema.begin(), kCreateSchema.end());
    for (const char* sql : statements) {
      if (auto ok = connection.run(sql); !ok) return ok.error();
    }
    const Extent empty;
    auto ok = connection.run("INSERT INTO berth.log VALUES (1, $1, $2, $3, 0, 0, $4, 0, $4, $5)",
                             PostgresValues()
                                 .integer(kPostgresSchemaVersion)
                                 .text(log_id)
                                 .boolean(unfinished)
                                 .bytes(bytes_of(empty.head.hash))
                                 .bytes(bytes_of(checksum_of(empty))));
    if (!ok) return ok.error();
    ok = connection.run("COMMIT");
    if (!ok) return ok.error();
    if (connection.warning().empty()) return {};
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: the log was made, but its commit came back with a warning: {}", connection.shown(),
                             connection.warning())};
  };
  auto done = create();
  if (done) return done;
  const Error error = done.error();
  if (connection.lost()) return error;
  if (auto undone = connection.run("ROLLBACK"); !undone) return undone.error();
  if (has_schema)
    return with_grant(connection, error, "Drop the schema berth, or GRANT CREATE, USAGE ON SCHEMA berth TO");
  const auto database = connection.run("SELECT quote_ident(current_database())");
  if (!database) return error;
  return with_grant(connection, error, fmt::format("GRANT CREATE ON DATABASE {} TO", database->text(0, 0)).c_str());
}

Result<void> check_rights(PostgresConnection& connection, std::size_t servers) {
  const auto rows = connection.run(
      "SELECT quote_ident(current_user), has_schema_privilege('berth', 'USAGE'), "
      "  coalesce((SELECT string_agg(t.relname || ' ' || p.privilege, ', ' ORDER BY t.relname, p.privilege) "
      "    FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace, "
      "    (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS p(privilege) "
      "    WHERE n.nspname = 'berth' AND t.relkind = 'r' AND NOT has_table_privilege(t.oid, p.privilege)), ''), "
      "  pg_has_role('pg_read_all_stats', 'USAGE')");
  if (!rows) return rows.error();
  const std::string role = rows->text(0, 0);
  const auto denied = [&](const std::string& what, const std::string& command) {
    return Error{ErrorCode::kDenied,
                 fmt::format("{}: the role {} may not {}. {}", connection.shown(), role, what, command)};
  };
  if (!rows->is_true(0, 1))
    return denied("use the schema berth", fmt::format("GRANT USAGE ON SCHEMA berth TO {}", role));
  if (const std::string missing = rows->text(0, 2); !missing.empty()) {
    return denied("do all that a server does (missing: " + missing + ")",
                  fmt::format("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA berth TO {}", role));
  }
  if (servers > 1 && !rows->is_true(0, 3)) {
    return denied("see in pg_stat_replication whether the standby has a commit",
                  fmt::format("GRANT pg_read_all_stats TO {}", role));
  }
  return {};
}

Result<void> check_foreign_objects(PostgresConnection& connection) {
  const std::string tables = kTables;
  const auto unlogged = connection.run(
      "SELECT min(relname::text) FROM pg_class WHERE relnamespace = to_regnamespace('berth') AND relkind = 'r' AND "
      "relpersistence <> 'p'");
  if (!unlogged) return unlogged.error();
  if (const std::string table = unlogged->text(0, 0); !table.empty()) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{}: the table {} is unlogged: a crash of PostgreSQL empties it, and a standby does not have "
                    "it. ALTER TABLE berth.{} SET LOGGED",
                    connection.shown(), table, table)};
  }
  const std::string sql =
      "SELECT what FROM ("
      " SELECT 'trigger ' || t.tgname || ' on ' || c.relname AS what FROM pg_trigger t JOIN pg_class c ON c.oid = "
      "t.tgrelid "
      "  WHERE c.relnamespace = to_regnamespace('berth') AND NOT t.tgisinternal"
      " UNION ALL SELECT 'rule ' || r.rulename || ' on ' || c.relname FROM pg_rewrite r JOIN pg_class c ON c.oid = "
      "  r.ev_class WHERE c.relnamespace = to_regnamespace('berth')"
      " UNION ALL SELECT 'row security of ' || c.relname FROM pg_class c WHERE c.relnamespace = "
      "to_regnamespace('berth') "
      "  AND c.relrowsecurity"
      " UNION ALL SELECT 'table ' || c.relname FROM pg_class c WHERE c.relnamespace = to_regnamespace('berth') "
      "  AND c.relkind IN ('r', 'v', 'm', 'f', 'p') AND c.relname NOT IN (" +
      tables + ")) AS found ORDER BY what LIMIT 1";
  const auto rows = connection.run(sql.c_str());
  if (!rows) return rows.error();
  if (rows->count() == 0) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{}: in the schema berth is a {} that is not berth's; it could change what "
                           "is written. Remove it",
                           connection.shown(), rows->text(0, 0))};
}

Result<void> check_foreign_rows(PostgresConnection& connection) {
  const auto rows = connection.run(
      "SELECT (SELECT min(seq) FROM berth.records, berth.log WHERE seq <= anchor_seq), "
      "(SELECT max(seq) FROM berth.records, berth.log WHERE seq > head_seq), (SELECT count(*) FROM berth.log)");
  if (!rows) return rows.error();
  for (const int column : {0, 1}) {
    if (const auto seq = rows->integer(0, column))
      return Error{ErrorCode::kCorrupt, fmt::format("record {}: it is {} of the log", *seq,
                                                    column == 0 ? "before the begin" : "behind the end")};
  }
  if (rows->integer(0, 2) != 1) return Error{ErrorCode::kCorrupt, "the table berth.log has more than one row"};
  return {};
}

}  // namespace berth::store

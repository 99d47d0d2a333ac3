#include "store/sqlite_connection.h"

#include <fmt/format.h>

#include "base/check.h"

namespace berth::store {

namespace {

constexpr int kBusyTimeoutMs = 5000;

ErrorCode code_of(int code) {
  switch (code & 0xff) {  // the low byte is the primary code, the rest says more
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // the SQL is fixed, so this error means that the schema has changed
    case SQLITE_MISMATCH:
      return ErrorCode::kCorrupt;
    case SQLITE_CONSTRAINT:
      return ErrorCode::kConflict;
    case SQLITE_TOOBIG:
      return ErrorCode::kTooLarge;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

Error sqlite_error(sqlite3* database, int code) {
  if ((code & 0xff) == SQLITE_CORRUPT) {
    return {ErrorCode::kCorrupt, fmt::format("a page of the database is damaged ({}, SQLite {})",
                                             sqlite3_errmsg(database), sqlite3_extended_errcode(database))};
  }
  return {code_of(code), fmt::format("{} (SQLite {})", sqlite3_errmsg(database), sqlite3_extended_errcode(database))};
}

Statement& Statement::bind(int index, std::int64_t value) {
  BERTH_CHECK(sqlite3_bind_int64(statement_, index, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind_bytes(int index, std::string_view bytes) {
  // A null pointer would bind NULL, so an empty view needs a valid pointer.
  const void* const data = bytes.empty() ? "" : bytes.data();
  const int code = sqlite3_bind_blob64(statement_, index, data, bytes.size(), nullptr);
  BERTH_CHECK(code == SQLITE_OK ||
              code == SQLITE_TOOBIG);  // a value that is too big stays unbound, and NOT NULL refuses it
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  const Error error = sqlite_error(sqlite3_db_handle(statement_), code);
  reset();
  return error;
}

Result<void> Statement::run() {
  const auto row = step();
  if (!row) return row.error();
  reset();
  return {};
}

std::optional<std::int64_t> Statement::integer(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

std::optional<std::string_view> Statement::bytes(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_BLOB) return std::nullopt;
  const void* const data = sqlite3_column_blob(statement_, column);
  return std::string_view(static_cast<const char*>(data),
                          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

Result<Connection> Connection::open(const std::string& path, int flags, const char* vfs) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, vfs);
  Connection connection(database);
  if (code != SQLITE_OK) {
    const Error error = sqlite_error(database, code);
    return Error{error.code, fmt::format("{}: {}", path, error.message)};
  }
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  return connection;
}

Connection::~Connection() {
  if (database_ != nullptr) BERTH_CHECK(sqlite3_close(database_) == SQLITE_OK);
}

Result<void> Connection::execute(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_error(database_, code);
  return {};
}

Result<Statement> Connection::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return sqlite_error(database_, code);
  return Statement(statement);
}

Result<std::int64_t> Connection::integer(const char* sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const auto row = statement->step();
  if (!row) return row.error();
  const auto value = *row ? statement->integer(0) : std::nullopt;
  if (!value) return Error{ErrorCode::kCorrupt, fmt::format("\"{}\" yields no integer", sql)};
  return *value;
}

}  // namespace berth::store

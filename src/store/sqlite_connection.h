#pragma once
// One SQLite connection and its prepared statements, as values that close themselves. Codes of SQLite become Errors.

#include <sqlite3.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::store {

class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(Statement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&& other) noexcept {
    std::swap(statement_, other.statement_);
    return *this;
  }

  // Parameters count from 1. Bytes must live until the statement is reset.
  Statement& bind(int index, std::uint64_t value) { return bind(index, static_cast<std::int64_t>(value)); }
  Statement& bind(int index, std::int64_t value);
  Statement& bind_bytes(int index, std::string_view bytes);

  // Returns true if there is a row, false when done. The statement resets itself when done or failed.
  Result<bool> step();
  // For statements without rows.
  Result<void> run();
  void reset() { sqlite3_reset(statement_); }

  // Columns count from 0. Returns nullopt if the stored value has another type, which only damage causes.
  std::optional<std::int64_t> integer(int column) const;
  std::optional<std::string_view> bytes(int column) const;

 private:
  sqlite3_stmt* statement_ = nullptr;
};

class Connection {
 public:
  static Result<Connection> open(const std::string& path, int flags, const char* vfs);
  Connection() = default;
  ~Connection();
  Connection(Connection&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(database_, other.database_);
    return *this;
  }

  Result<void> execute(const char* sql);
  Result<Statement> prepare(const char* sql);
  // Returns the single integer that `sql` yields.
  Result<std::int64_t> integer(const char* sql);
  int changes() const { return sqlite3_changes(database_); }
  sqlite3* raw() const { return database_; }

 private:
  explicit Connection(sqlite3* database) : database_(database) {}
  sqlite3* database_ = nullptr;
};

// kCorrupt for damage, kConflict for a violated constraint, kTooLarge, kUnavailable for a lock, and kIo for the rest.
Error sqlite_error(sqlite3* database, int code);

}  // namespace berth::store

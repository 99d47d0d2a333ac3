#pragma once
// One connection to PostgreSQL. Every statement has a deadline of this side's own, because the server's
// statement_timeout does not fire while a COMMIT waits for a standby. What the server says beside its answer is kept:
// that a COMMIT is local only and not on the standby is told by a WARNING, and the COMMIT itself succeeds.
//
// Not for several threads at once.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/postgres_address.h"

struct pg_conn;
struct pg_result;

namespace berth::store {

// Parameters of a statement, counted from 1 in the order of their adding. Bytes are copied.
class PostgresValues {
 public:
  PostgresValues& integer(std::uint64_t value) { return integer(static_cast<std::int64_t>(value)); }
  PostgresValues& integer(std::int64_t value);
  PostgresValues& boolean(bool value);
  PostgresValues& text(std::string_view value);
  PostgresValues& bytes(std::string_view value);
  PostgresValues& integers(std::span<const std::int64_t> values);
  PostgresValues& byte_strings(std::span<const std::string_view> values);

 private:
  friend class PostgresConnection;
  PostgresValues& add(unsigned type, std::string bytes);
  std::vector<unsigned> types_;
  std::vector<std::string> values_;
};

// The rows of an answer. Columns count from 0. Returns nullopt for NULL and for a value of another type.
class PostgresRows {
 public:
  PostgresRows() : result_(nullptr, nullptr) {}
  explicit PostgresRows(pg_result* result);
  int count() const;
  std::optional<std::int64_t> integer(int row, int column) const;
  std::optional<std::string_view> bytes(int row, int column) const;
  std::string text(int row, int column) const { return std::string(bytes(row, column).value_or("")); }
  bool is_true(int row, int column) const { return text(row, column) == std::string_view("\1", 1); }

 private:
  std::unique_ptr<pg_result, void (*)(pg_result*)> result_;
};

// Called before a statement is sent and once it was sent, with the socket of the connection. For crash tests.
using PostgresFault = std::function<void(bool sent, int socket)>;

class PostgresConnection {
 public:
  // Errors: kUnavailable: no server that takes writes could be reached; kDenied: no password, or a wrong one.
  static Result<PostgresConnection> open(const PostgresAddress& address, std::int64_t deadline_ms,
                                         PostgresFault fault = {});
  PostgresConnection() = default;
  ~PostgresConnection();
  PostgresConnection(PostgresConnection&& other) noexcept { *this = std::move(other); }
  PostgresConnection& operator=(PostgresConnection&& other) noexcept;

  // Runs one statement and waits for its end, outside of BEGIN its commit included. Errors: kUnavailable: the
  // connection is lost or the deadline is over, and what became of the statement is unknown; kDenied: a right is
  // missing; kConflict: a constraint, a concurrent transaction, or what is to be made is there; kCorrupt
  // and kIo as the server says.
  Result<PostgresRows> run(const char* sql, const PostgresValues& values = {});
  // The same within what is left of the deadline of the last run: both have one together.
  Result<PostgresRows> run_on(const char* sql, const PostgresValues& values = {});
  bool has_time() const;

  // The warnings of the last run, in one text; empty: none. One that says only that the database will need a VACUUM
  // some day is left out.
  const std::string& warning() const { return said_->warning; }
  // One of them says that a commit is on this server, and that it no longer waits for a standby.
  bool is_local_only() const { return said_->local_only; }
  // The detail of the last error, which names the key of a violated constraint.
  const std::string& detail() const { return said_->detail; }
  // The SQLSTATE of the last error; empty where it was not the server's.
  const std::string& sqlstate() const { return said_->sqlstate; }
  bool lost() const { return lost_; }
  // The process that serves this connection, as the server said when it began. One behind a pooler is another one.
  std::int64_t server_process() const;
  int server_version() const;  // 150018 is 15.18
  const std::string& shown() const { return said_->shown; }

 private:
  struct Said {
    std::string shown;
    std::string warning;
    bool local_only = false;
    std::string detail;
    std::string sqlstate;
  };
  static void hear(void* said, const pg_result* notice);
  bool send(const char* sql, const PostgresValues& values);
  Result<void> wait(bool for_writing);
  Error lose(const std::string& why);
  Error error_of(const pg_result* result);

  pg_conn* connection_ = nullptr;
  std::unique_ptr<Said> said_;  // its address is known to libpq
  std::int64_t deadline_ms_ = 0;
  std::int64_t until_ms_ = 0;
  PostgresFault fault_;
  bool lost_ = true;
};

}  // namespace berth::store

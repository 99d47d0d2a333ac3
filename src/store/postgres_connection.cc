#include "store/postgres_connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace berth::store {

namespace {

// Types of PostgreSQL, from its catalog pg_type.
constexpr unsigned kBool = 16;
constexpr unsigned kBytea = 17;
constexpr unsigned kInt8 = 20;
constexpr unsigned kInt4 = 23;
constexpr unsigned kText = 25;
constexpr unsigned kByteaArray = 1001;
constexpr unsigned kInt8Array = 1016;
constexpr int kBinary = 1;

std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// PostgreSQL sends and takes integers with the highest byte first.
std::string big_endian(std::uint64_t value, unsigned size) {
  std::string bytes;
  for (unsigned i = size; i-- > 0;) bytes += static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i)));
  return bytes;
}

// The head of an array of one dimension, counted from 1.
std::string array_head(unsigned type, std::size_t count) {
  std::string head = big_endian(count == 0 ? 0 : 1, 4) + big_endian(0, 4) + big_endian(type, 4);
  if (count > 0) head += big_endian(count, 4) + big_endian(1, 4);
  return head;
}

// In one line, without what libpq puts in front.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? "; " : std::string(1, c);
  while (line.ends_with("; ") || line.ends_with(' ')) line.pop_back();
  while (line.ends_with(';')) line.pop_back();
  return line;
}

std::string field_of(const PGresult* result, int field) {
  const char* const text = PQresultErrorField(result, field);
  return text == nullptr ? std::string() : std::string(text);
}

// Classes of SQLSTATE, as the manual of PostgreSQL lists them in its appendix A.
ErrorCode code_of(std::string_view sqlstate) {
  if (sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate == "25006") return ErrorCode::kUnavailable;
  if (sqlstate == "57014" || sqlstate == "55P03")
    return ErrorCode::kUnavailable;  // cancelled; a lock was not to be had
  if (sqlstate.starts_with("23") || sqlstate == "40001" || sqlstate == "40P01") return ErrorCode::kConflict;
  if (sqlstate == "42P06" || sqlstate == "42P07") return ErrorCode::kConflict;  // a schema or table is there already
  if (sqlstate == "42501" || sqlstate.starts_with("28")) return ErrorCode::kDenied;
  if (sqlstate == "3F000" || sqlstate == "42P01") return ErrorCode::kNotFound;
  if (sqlstate == "XX001" || sqlstate == "XX002") return ErrorCode::kCorrupt;
  if (sqlstate == "54000") return ErrorCode::kTooLarge;
  return ErrorCode::kIo;
}

}  // namespace

PostgresValues& PostgresValues::add(unsigned type, std::string bytes) {
  types_.push_back(type);
  values_.push_back(std::move(bytes));
  return *this;
}

PostgresValues& PostgresValues::integer(std::int64_t value) {
  return add(kInt8, big_endian(static_cast<std::uint64_t>(value), 8));
}
PostgresValues& PostgresValues::boolean(bool value) { return add(kBool, std::string(1, value ? '\1' : '\0')); }
PostgresValues& PostgresValues::text(std::string_view value) { return add(kText, std::string(value)); }
PostgresValues& PostgresValues::bytes(std::string_view value) { return add(kBytea, std::string(value)); }

PostgresValues& PostgresValues::integers(std::span<const std::int64_t> values) {
  std::string bytes = array_head(kInt8, values.size());
  for (const std::int64_t value : values) bytes += big_endian(8, 4) + big_endian(static_cast<std::uint64_t>(value), 8);
  return add(kInt8Array, std::move(bytes));
}

PostgresValues& PostgresValues::byte_strings(std::span<const std::string_view> values) {
  std::string bytes = array_head(kBytea, values.size());
  for (const std::string_view value : values) bytes.append(big_endian(value.size(), 4)).append(value);
  return add(kByteaArray, std::move(bytes));
}

PostgresRows::PostgresRows(pg_result* result) : result_(result, &PQclear) {}

int PostgresRows::count() const { return result_ ? PQntuples(result_.get()) : 0; }

std::optional<std::string_view> PostgresRows::bytes(int row, int column) const {
  if (!result_ || row >= count() || PQgetisnull(result_.get(), row, column) != 0) return std::nullopt;
  return std::string_view(PQgetvalue(result_.get(), row, column),
                          static_cast<std::size_t>(PQgetlength(result_.get(), row, column)));
}

std::optional<std::int64_t> PostgresRows::integer(int row, int column) const {
  const auto found = bytes(row, column);
  if (!found) return std::nullopt;
  const unsigned type = PQftype(result_.get(), column);
  if ((type != kInt8 || found->size() != 8) && (type != kInt4 || found->size() != 4)) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : *found) value = (value << 8U) | static_cast<std::uint8_t>(c);
  if (type == kInt4) return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
  return static_cast<std::int64_t>(value);
}

Result<PostgresConnection> PostgresConnection::open(const PostgresAddress& address, std::int64_t deadline_ms,
                                                    PostgresFault fault) {
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : address.parameters) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  PostgresConnection made;
  made.said_ = std::make_unique<Said>();
  made.said_->shown = address.shown;
  made.deadline_ms_ = deadline_ms;
  made.connection_ = PQconnectdbParams(keys.data(), values.data(), 0);
  if (made.connection_ == nullptr) return Error{ErrorCode::kUnavailable, address.shown + ": no memory to connect"};
  if (PQstatus(made.connection_) != CONNECTION_OK) {
    const std::string why = address.shown + ": " + one_line(PQerrorMessage(made.connection_));
    if (PQconnectionNeedsPassword(made.connection_) != 0)
      return Error{ErrorCode::kDenied, why +
                                           ". Put the password into a password file of mode 0600, and name it by "
                                           "passfile=FILE in the address or by PGPASSFILE"};
    const bool refused = PQconnectionUsedPassword(made.connection_) != 0 &&
                         why.find("password authentication failed") != std::string::npos;
    return Error{refused ? ErrorCode::kDenied : ErrorCode::kUnavailable, why};
  }
  made.lost_ = false;
  PQsetNoticeReceiver(made.connection_, &PostgresConnection::hear, made.said_.get());
  if (PQsetnonblocking(made.connection_, 1) != 0) return made.lose("it cannot be made not to block");
  made.fault_ = std::move(fault);
  return made;
}

PostgresConnection::~PostgresConnection() {
  if (connection_ != nullptr) PQfinish(connection_);
}

PostgresConnection& PostgresConnection::operator=(PostgresConnection&& other) noexcept {
  std::swap(connection_, other.connection_);
  std::swap(said_, other.said_);
  std::swap(deadline_ms_, other.deadline_ms_);
  std::swap(until_ms_, other.until_ms_);
  std::swap(fault_, other.fault_);
  std::swap(lost_, other.lost_);
  return *this;
}

// The severity is the one that is not translated.
void PostgresConnection::hear(void* said, const pg_result* notice) {
  if (field_of(notice, PG_DIAG_SEVERITY_NONLOCALIZED) != "WARNING") return;
  // The text is in the language of the server; the function that says it is not.
  const std::string source = field_of(notice, PG_DIAG_SOURCE_FUNCTION);
  // "must be vacuumed within N transactions": it says nothing of this commit, and is in PostgreSQL's own log as well.
  if (source == "GetNewTransactionId") return;
  if (source == "SyncRepWaitForLSN") static_cast<Said*>(said)->local_only = true;
  std::string& warning = static_cast<Said*>(said)->warning;
  if (!warning.empty()) warning += "; ";
  warning += field_of(notice, PG_DIAG_MESSAGE_PRIMARY) + " (" + field_of(notice, PG_DIAG_SQLSTATE) + ")";
  const std::string detail = field_of(notice, PG_DIAG_MESSAGE_DETAIL);
  if (!detail.empty()) warning += ". " + detail;
}

std::int64_t PostgresConnection::server_process() const { return PQbackendPID(connection_); }
int PostgresConnection::server_version() const { return PQserverVersion(connection_); }

Error PostgresConnection::lose(const std::string& why) {
  lost_ = true;
  return {ErrorCode::kUnavailable, said_->shown + ": " + one_line(why)};
}

Error PostgresConnection::error_of(const pg_result* result) {
  said_->sqlstate = field_of(result, PG_DIAG_SQLSTATE);
  said_->detail = field_of(result, PG_DIAG_MESSAGE_DETAIL);
  if (said_->sqlstate.empty()) return lose(PQresultErrorMessage(result));
  if (PQstatus(connection_) != CONNECTION_OK || said_->sqlstate.starts_with("57P")) lost_ = true;
  return {code_of(said_->sqlstate), said_->shown + ": " + one_line(field_of(result, PG_DIAG_MESSAGE_PRIMARY))};
}

Result<void> PostgresConnection::wait(bool for_writing) {
  while (true) {
    const std::int64_t left = until_ms_ - steady_ms();
    if (left <= 0) {
      return lose(fmt::format("no answer within {} ms, and what became of the statement is unknown", deadline_ms_));
    }
    pollfd look{PQsocket(connection_), static_cast<short>(for_writing ? POLLIN | POLLOUT : POLLIN), 0};
    const int ready = ::poll(&look, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready < 0 && errno != EINTR) return lose("cannot wait for an answer");
    if (ready <= 0) continue;
    if ((look.revents & (POLLIN | POLLERR | POLLHUP)) != 0 && PQconsumeInput(connection_) == 0)
      return lose(PQerrorMessage(connection_));
    return {};
  }
}

bool PostgresConnection::send(const char* sql, const PostgresValues& values) {
  std::vector<const char*> bytes;
  std::vector<int> lengths;
  std::vector<int> formats(values.values_.size(), kBinary);
  for (const std::string& value : values.values_) {
    bytes.push_back(value.data());
    lengths.push_back(static_cast<int>(value.size()));
  }
  return PQsendQueryParams(connection_, sql, static_cast<int>(bytes.size()), values.types_.data(), bytes.data(),
                           lengths.data(), formats.data(), kBinary) == 1;
}

Result<PostgresRows> PostgresConnection::run(const char* sql, const PostgresValues& values) {
  until_ms_ = steady_ms() + deadline_ms_;
  return run_on(sql, values);
}

bool PostgresConnection::has_time() const { return steady_ms() < until_ms_; }

Result<PostgresRows> PostgresConnection::run_on(const char* sql, const PostgresValues& values) {
  if (lost_) return Error{ErrorCode::kUnavailable, said_ ? said_->shown + ": the connection is lost" : "not connected"};
  said_->warning.clear();
  said_->local_only = false;
  said_->detail.clear();
  said_->sqlstate.clear();
  if (fault_) fault_(false, PQsocket(connection_));
  if (!send(sql, values)) return lose(PQerrorMessage(connection_));
  while (true) {
    const int left = PQflush(connection_);
    if (left == 0) break;
    if (left < 0) return lose(PQerrorMessage(connection_));
    if (auto ok = wait(true); !ok) return ok.error();
  }
  if (fault_) fault_(true, PQsocket(connection_));
  // The commit of a statement outside of BEGIN comes behind its rows: an error of it is a further result.
  PostgresRows rows;
  std::optional<Error> failed;
  while (true) {
    while (PQisBusy(connection_) != 0) {
      if (auto ok = wait(false); !ok) return ok.error();
    }
    PGresult* const result = PQgetResult(connection_);
    if (result == nullptr) break;
    PostgresRows one(result);
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      rows = std::move(one);
    } else if (!failed) {
      failed = error_of(result);
    }
  }
  if (PQstatus(connection_) != CONNECTION_OK) {
    lost_ = true;
    if (!failed) failed = lose(PQerrorMessage(connection_));
  }
  if (failed) return *failed;
  return rows;
}

}  // namespace berth::store

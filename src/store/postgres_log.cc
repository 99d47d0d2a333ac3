#include "store/postgres_log.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "store/checkpoint_files.h"
#include "store/postgres_mark.h"

namespace berth::store {

namespace {

constexpr std::uint64_t kRecordsAtOnce = 256;
constexpr std::int64_t kBytesAtOnce = 4 << 20;
constexpr std::uint64_t kCutAtOnce = 20'000;
constexpr std::size_t kCheckpointPart = 16U << 20U;
constexpr int kBetweenLooksMs = 2;
constexpr std::uint64_t kMostInteger = std::numeric_limits<std::int64_t>::max();

// Moves the row from one extent to the next and adds rows, or does nothing. $10 to $12: whose log it is, which process
// of the server this is, and whether a standby must have each commit.
constexpr const char* kChange =
    "WITH moved AS (UPDATE berth.log SET head_seq = $1, epoch = $2, head_hash = $3, anchor_seq = $4, anchor_hash = $5, "
    "  checksum = $6 WHERE id = 1 AND head_seq = $7 AND epoch = $8 AND checksum = $9 AND log_id = $10 "
    "  AND pg_backend_pid() = $11 AND current_setting('fsync') = 'on' "
    "  AND current_setting('synchronous_commit') <> 'off' "
    "  AND (NOT $12 OR (current_setting('synchronous_commit') IN ('on', 'remote_apply') "
    "  AND current_setting('synchronous_standby_names') <> '')) RETURNING 1), "
    "added AS (INSERT INTO berth.records SELECT r.* FROM "
    "  unnest($13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bytea[], $19::bytea[]) "
    "  AS r WHERE EXISTS (SELECT FROM moved)), "
    "retired AS (INSERT INTO berth.history SELECT h.* FROM "
    "  unnest($20::bigint[], $21::bigint[], $22::bigint[], $23::bytea[], $24::bytea[]) "
    "  AS h WHERE EXISTS (SELECT FROM moved)), "
    "cut AS (DELETE FROM berth.records WHERE seq <= $25 AND EXISTS (SELECT FROM moved)) "
    "SELECT count(*) FROM moved";

// How many synchronous standbys have on their disk all that was written up to $1, or up to now where that is empty.
constexpr const char* kReplicated =
    "SELECT current_setting('synchronous_standby_names'), upto.lsn::text, "
    "  (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= upto.lsn) "
    "FROM (SELECT coalesce(nullif($1, '')::pg_lsn, pg_current_wal_flush_lsn()) AS lsn) AS upto";

// A row where the log $1 still has the writer's epoch $2, and its record $3 the hash $4: so that it is the record which
// this process has folded, also over a new connection to another server. No lock: it would hold up the appends. The
// tables cannot be replaced before the transaction ends.
constexpr const char* kFoldedFrom =
    "SELECT 1 FROM berth.log WHERE id = 1 AND log_id = $1 AND epoch = $2 AND ("
    "(anchor_seq = $3 AND anchor_hash = $4) OR EXISTS (SELECT FROM berth.records WHERE seq = $3 AND hash = $4))";

// One chunk: the records from $1 to $2, and no more once they have $3 bytes. Both ends are given, so that no plan,
// however little it knows of the table, looks at more.
constexpr const char* kRead =
    "SELECT seq, epoch, time_ms, kind, version, payload, hash FROM "
    " (SELECT *, sum(octet_length(payload)) OVER (ORDER BY seq) - octet_length(payload) AS before FROM "
    "  (SELECT * FROM berth.records WHERE seq >= $1 AND seq <= $2) AS few) AS measured "
    "WHERE before < $3 ORDER BY seq";

std::string random_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", device());
  return id;
}

template <class T>
std::optional<T> fitting(std::optional<std::int64_t> value) {
  if (!value || !std::in_range<T>(*value)) return std::nullopt;
  return static_cast<T>(*value);
}

std::int64_t clamped(std::uint64_t value) { return static_cast<std::int64_t>(std::min(value, kMostInteger)); }

Hash checkpoint_checksum(std::uint64_t seq, const Hash& head_hash, std::string_view bytes) {
  return sha256(fmt::format("{} {} {}", seq, to_hex(head_hash), to_hex(sha256(bytes))));
}

// The next record of a chunk, which must be `seq`. `hash` is that of the record before it, and becomes its own.
Result<Record> checked_record(const PostgresRows& rows, int row, std::uint64_t seq, HashChain& chain, Hash& hash) {
  const auto stored_seq = rows.integer(row, 0);
  if (stored_seq != static_cast<std::int64_t>(seq))
    return corrupt_record(seq, fmt::format("missing; in its place is {}", stored_seq.value_or(-1)));
  const auto epoch = fitting<std::uint64_t>(rows.integer(row, 1));
  const auto time_ms = rows.integer(row, 2);
  const auto kind = fitting<std::uint16_t>(rows.integer(row, 3));
  const auto version = fitting<std::uint16_t>(rows.integer(row, 4));
  const auto payload = rows.bytes(row, 5);
  const auto stored_hash = to_hash(rows.bytes(row, 6));
  if (!epoch || !time_ms || !kind || !version || !payload || !stored_hash)
    return corrupt_record(seq, "the row is damaged");
  Record record{seq, *epoch, {*time_ms}, *kind, *version, std::string(*payload)};
  if (chain.next(hash, record) != *stored_hash) return corrupt_record(seq, "its hash does not fit the chain");
  hash = *stored_hash;
  return record;
}

Result<HistoryRow> checked_history(const PostgresRows& rows, int row) {
  const auto cursor = rows.integer(row, 0);
  const auto job_id = rows.integer(row, 1);
  const auto finished_ms = rows.integer(row, 2);
  const auto bytes = rows.bytes(row, 3);
  const auto hash = to_hash(rows.bytes(row, 4));
  const Error damaged{ErrorCode::kCorrupt, fmt::format("history row {}: its hash does not hold", cursor.value_or(-1))};
  if (!cursor || !job_id || !finished_ms || !bytes || !hash) return damaged;
  HistoryRow found{
      static_cast<std::uint64_t>(*job_id), {*finished_ms}, std::string(*bytes), static_cast<std::uint64_t>(*cursor)};
  if (hash_of(found) != *hash) return damaged;
  return found;
}

// The 7 of "Key (job_id)=(7) already exists.", in the language of the server; empty: it is of another key.
std::string job_in(std::string_view detail) {
  const std::size_t begin = detail.find("(job_id)=(");
  if (begin == std::string_view::npos) return {};
  detail.remove_prefix(begin + 10);
  return std::string(detail.substr(0, detail.find(')')));
}

}  // namespace

struct PostgresLog::Change {
  Extent from;
  Extent to;
  std::span<const Record> records = {};
  std::span<const Hash> hashes = {};
  std::span<const HistoryRow> finished_jobs = {};
  std::uint64_t history_rows = 0;  // before it
};

struct PostgresLog::Chunk {
  std::vector<Record> records;
  Hash last_hash{};
  std::optional<Error> damage;  // of the record after them
};

PostgresLog::PostgresLog(PostgresAddress address, PostgresOptions options)
    : address_(std::move(address)),
      options_(std::move(options)),
      use_(options_.deadline_ms == 0 ? PostgresUse::kRead : PostgresUse::kServe),
      disk_(std::nullopt, 0) {}

Result<std::unique_ptr<PostgresLog>> PostgresLog::open(const std::string& address, const PostgresOptions& options) {
  auto parsed = parse_postgres_address(address, PostgresUse::kServe);
  if (!parsed) return parsed.error();
  std::unique_ptr<PostgresLog> log(new PostgresLog(std::move(*parsed), options));
  if (!options.directory.empty()) {
    auto lock = DataDirectory::take(options.directory);
    if (!lock) return lock.error();
    log->lock_ = std::move(*lock);
  }
  if (options.once_locked) {
    if (auto ok = options.once_locked(); !ok) return ok.error();
  }
  if (auto ok = log->open_for_writing(); !ok) return ok.error();
  return log;
}

Result<std::unique_ptr<PostgresLog>> PostgresLog::open_read_only(const std::string& address) {
  auto parsed = parse_postgres_address(address, PostgresUse::kRead);
  if (!parsed) return parsed.error();
  PostgresOptions options;
  options.deadline_ms = 0;
  std::unique_ptr<PostgresLog> log(new PostgresLog(std::move(*parsed), options));
  auto reader = log->connect();
  if (!reader) return reader.error();
  log->reader_ = std::move(*reader);
  auto row = load_log_row(log->reader_);
  if (!row) return row.error();
  if (!*row) return not_found(log->address_.shown + ": the database has no log of berth");
  if ((*row)->is_unfinished)
    return conflict(log->address_.shown +
                    ": a copy to it did not come to its end. DROP SCHEMA berth CASCADE, and copy again");
  log->log_id_ = (*row)->log_id;
  log->extent_ = (*row)->extent;
  return log;
}

Result<PostgresConnection> PostgresLog::connect() const {
  constexpr std::int64_t kReadDeadlineMs = 120'000;  // a whole chunk of a log, from a busy server
  auto connection = PostgresConnection::open(
      address_, use_ == PostgresUse::kRead ? kReadDeadlineMs : options_.deadline_ms, options_.fault);
  if (!connection) return connection;
  if (auto ok = prepare_connection(*connection, use_); !ok) return ok.error();
  return connection;
}

Result<void> PostgresLog::open_for_writing() {
  std::optional<PostgresMark> mark;
  if (!options_.directory.empty()) {
    auto read = read_postgres_mark(options_.directory);
    if (!read) return read.error();
    mark = std::move(*read);
  }
  auto writer = connect();
  if (!writer) return writer.error();
  writer_ = std::move(*writer);
  if (auto ok = check_commits(writer_, address_.servers); !ok) return ok;
  if (auto ok = adopt(mark ? &*mark : nullptr); !ok) return ok;
  if (auto ok = check_rights(writer_, address_.servers); !ok) return ok;
  if (auto ok = check_foreign_objects(writer_); !ok) return ok;
  for (PostgresConnection* further : {&reader_, &checkpoint_writer_}) {
    auto connection = connect();
    if (!connection) return connection.error();
    *further = std::move(*connection);
  }
  const Head& head = extent_.head;
  if (head.seq != extent_.anchor_seq) {
    const auto last = writer_.run("SELECT hash FROM berth.records WHERE seq = $1", PostgresValues().integer(head.seq));
    if (!last) return last.error();
    if (last->count() == 0) return corrupt_record(head.seq, "missing, and the log says that it is the last one");
    if (to_hash(last->bytes(0, 0)) != head.hash)
      return corrupt_record(head.seq, "its hash is not that of the log's head");
  }
  if (options_.directory.empty()) return {};
  if (auto ok = check_head_file(); !ok) return ok;
  if (!mark || mark->shown != address_.shown) {
    if (auto ok = write_postgres_mark(options_.directory, {log_id_, address_.shown}); !ok) return ok;
  }
  auto head_file = HeadFile::open(options_.directory / kPostgresHead, disk_);
  if (!head_file) return head_file.error();
  head_file_ = std::move(*head_file);
  return head_file_.write({head.seq, head.hash});
}

// Takes the log of the database for its own, or makes one.
Result<void> PostgresLog::adopt(const PostgresMark* mark) {
  constexpr int kMostTries = 3;
  auto row = load_log_row(writer_);
  for (int tries = 1; row && !*row; ++tries) {
    if (mark != nullptr) {
      return conflict(
          fmt::format("{}: the database has no log, and {} is of the log {} on {}. Give that address by "
                      "--store, or restore that database",
                      address_.shown, options_.directory.string(), mark->log_id, mark->shown));
    }
    log_id_ = random_id();
    const auto made = create_postgres_log(writer_, log_id_, options_.unfinished);
    if (made || made.error().code != ErrorCode::kConflict || tries == kMostTries) return made;
    row = load_log_row(writer_);  // it was made meanwhile
  }
  if (!row) return row.error();
  if (options_.unfinished && !(*row)->is_unfinished)
    return conflict(address_.shown + ": the database has a log already; name another database");
  if ((*row)->is_unfinished)
    return conflict(address_.shown +
                    ": a copy to it did not come to its end. DROP SCHEMA berth CASCADE, and copy again");
  if (mark != nullptr && mark->log_id != (*row)->log_id) {
    return conflict(
        fmt::format("{}: it has the log of another cluster ({}); {} is of the log {} on {}. Give that address "
                    "by --store, or another directory by --data",
                    address_.shown, (*row)->log_id, options_.directory.string(), mark->log_id, mark->shown));
  }
  log_id_ = (*row)->log_id;
  extent_ = (*row)->extent;
  history_rows_ = (*row)->history_rows;
  return {};
}

// The record that this directory acknowledged last must be in the log, with its hash: a database that was restored, or
// a standby that took over without it, has an older end.
Result<void> PostgresLog::check_head_file() {
  const std::filesystem::path path = options_.directory / kPostgresHead;
  const auto line = read_head_file(path);
  const Extent now = extent();
  if (!line) {
    if (now.head.seq > 0) {
      warnings_.push_back(fmt::format(
          "{} is {}: that record {}, the last one in the log, is the last one acknowledged cannot be checked. Expected "
          "with a new data directory, possible after a power cut, else the end of the log may be lost",
          path.string(), std::filesystem::exists(path) ? "damaged" : "missing", now.head.seq));
    }
    return {};
  }
  if (line->seq > now.head.seq) {
    return corrupt_record(now.head.seq + 1,
                          fmt::format("missing: {} records up to {} were acknowledged and are gone from {}",
                                      line->seq - now.head.seq, line->seq, address_.shown));
  }
  if (line->seq < now.anchor_seq) return {};  // truncated since
  const auto hash = hash_at(line->seq);
  if (!hash) return hash.error();
  if (*hash != line->hash) return corrupt_record(line->seq, "its hash is not the one that was acknowledged");
  return {};
}

Extent PostgresLog::extent() const {
  const std::lock_guard lock(extent_mutex_);
  return extent_;
}

Result<void> PostgresLog::usable() const {
  const std::lock_guard lock(extent_mutex_);
  if (failure_.empty()) return {};
  return Error{ErrorCode::kIo, failure_ + "; nothing is written any more until the log is opened again"};
}

Result<void> PostgresLog::writable() const {
  if (use_ == PostgresUse::kRead) return Error{ErrorCode::kDenied, "the log was opened for reading only"};
  return usable();
}

Error PostgresLog::note_failure(const Error& error) {
  const std::lock_guard lock(extent_mutex_);
  if (failure_.empty()) failure_ = error.message;
  return error;
}

// What goes wrong with a checkpoint says nothing of the log, if it is not damage.
Error PostgresLog::note_damage(const Error& error) {
  return error.code == ErrorCode::kCorrupt ? note_failure(error) : error;
}

// A refusal leaves the log unchanged. After any other error only the next open can tell what is in it.
Error PostgresLog::broken(const Error& error) {
  const bool unchanged = error.code == ErrorCode::kConflict || error.code == ErrorCode::kTooLarge;
  return unchanged ? error : note_failure(error);
}

Result<void> PostgresLog::append(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records,
                                 std::span<const HistoryRow> finished_jobs) {
  if (auto ok = writable(); !ok) return ok;
  if (auto ok = check_batch(epoch, first_seq, records); !ok) return ok;
  const Extent from = extent();
  if (epoch != from.head.epoch || first_seq != from.head.seq + 1) return refused_append(from.head, epoch, first_seq);
  Extent to = from;
  std::vector<Hash> hashes;
  hashes.reserve(records.size());
  for (const Record& record : records) hashes.push_back(to.head.hash = chain_.next(to.head.hash, record));
  to.head.seq = records.back().seq;
  if (auto ok = change({from, to, records, hashes, finished_jobs, history_rows_}); !ok) return broken(ok.error());
  if (auto ok = moved_to(to, history_rows_ + finished_jobs.size()); !ok) return ok;
  const std::lock_guard lock(extent_mutex_);
  ++counters_.appends;
  counters_.records += records.size();
  for (const Record& record : records) counters_.bytes += record.payload.size();
  return {};
}

Result<void> PostgresLog::change(const Change& change) {
  std::array<std::vector<std::int64_t>, 5> numbers;
  std::vector<std::string_view> payloads;
  std::vector<std::string_view> hashes;
  for (std::size_t i = 0; i < change.records.size(); ++i) {
    const Record& record = change.records[i];
    numbers[0].push_back(static_cast<std::int64_t>(record.seq));
    numbers[1].push_back(static_cast<std::int64_t>(record.epoch));
    numbers[2].push_back(record.time.ms);
    numbers[3].push_back(record.kind);
    numbers[4].push_back(record.version);
    payloads.push_back(record.payload);
    hashes.push_back(bytes_of(change.hashes[i]));
  }
  const Extent& to = change.to;
  PostgresValues values;
  values.integer(to.head.seq).integer(to.head.epoch).bytes(bytes_of(to.head.hash));
  values.integer(to.anchor_seq).bytes(bytes_of(to.anchor_hash)).bytes(bytes_of(checksum_of(to)));
  values.integer(change.from.head.seq).integer(change.from.head.epoch).bytes(bytes_of(checksum_of(change.from)));
  values.text(log_id_).integer(writer_.server_process()).boolean(address_.servers > 1);
  for (const auto& column : numbers) values.integers(column);
  values.byte_strings(payloads).byte_strings(hashes);
  std::array<std::vector<std::int64_t>, 3> history;
  std::vector<std::string_view> history_bytes;
  std::vector<Hash> history_hashes;
  for (const HistoryRow& row : change.finished_jobs) {
    history[0].push_back(static_cast<std::int64_t>(change.history_rows + history[0].size() + 1));
    history[1].push_back(static_cast<std::int64_t>(row.job_id));
    history[2].push_back(row.finished.ms);
    history_bytes.push_back(row.bytes);
    history_hashes.push_back(hash_of(row));
  }
  std::vector<std::string_view> history_hash_bytes;
  for (const Hash& hash : history_hashes) history_hash_bytes.push_back(bytes_of(hash));
  for (const auto& column : history) values.integers(column);
  values.byte_strings(history_bytes).byte_strings(history_hash_bytes);
  values.integer(to.anchor_seq == change.from.anchor_seq ? 0 : to.anchor_seq);
  const auto rows = writer_.run(kChange, values);
  if (!rows) return refused_change(change, rows.error());
  if (rows->integer(0, 0) == 1) return acknowledged(writer_);
  // Nothing was changed. A setting that forbids it is told by what mends it.
  if (auto commits = check_commits(writer_, address_.servers); !commits) {
    const bool passes = commits.error().code == ErrorCode::kUnavailable;
    return Error{passes ? ErrorCode::kUnavailable : ErrorCode::kIo, commits.error().message};
  }
  const auto row = load_log_row(writer_);
  if (!row) return row.error();
  if (!*row || (*row)->log_id != log_id_)
    return Error{ErrorCode::kCorrupt, address_.shown + ": the log was replaced by another one"};
  if ((*row)->extent == change.from)
    return Error{ErrorCode::kUnavailable,
                 address_.shown + ": nothing was appended, for a setting that is another one by now; try again"};
  return refused_append((*row)->extent.head, change.from.head.epoch, change.from.head.seq + 1);
}

// What an append that PostgreSQL refused means. Nothing of it was kept.
Error PostgresLog::refused_change(const Change& change, const Error& error) const {
  if (error.code != ErrorCode::kConflict) return error;
  const std::string& state = writer_.sqlstate();
  if (state == "23505") {
    if (const std::string job = job_in(writer_.detail()); !job.empty())
      return conflict(fmt::format("append: job {} is already in the history", job));
    return corrupt_record(change.from.head.seq + 1, "a row is there already, behind the end: " + error.message);
  }
  if (state.starts_with("23")) return {ErrorCode::kIo, error.message};
  return conflict(fmt::format("append: another writer writes this log: {}", error.message));
}

// After a COMMIT that returned: is it as durable as it says?
Result<void> PostgresLog::is_durable(PostgresConnection& connection) {
  if (!connection.warning().empty()) {
    // A commit that is on the primary alone is known for sure once the next start has taken its epoch: that commit
    // waits.
    return Error{connection.is_local_only() ? ErrorCode::kUnavailable : ErrorCode::kIo,
                 fmt::format("{}: a commit came back with a warning, and is not acknowledged: {}", address_.shown,
                             connection.warning())};
  }
  if (auto ok = replicated(connection); !ok) return ok;
  const std::lock_guard lock(extent_mutex_);
  ++counters_.fsyncs;
  return {};
}

Result<void> PostgresLog::acknowledged(PostgresConnection& connection) {
  if (auto ok = is_durable(connection); !ok) return note_failure(ok.error());
  return {};
}

// Within the deadline of that COMMIT.
Result<void> PostgresLog::replicated(PostgresConnection& connection) {
  if (address_.servers == 1) return {};
  std::string upto;
  while (true) {
    const auto rows = connection.run_on(kReplicated, PostgresValues().text(upto));
    if (!rows) return rows.error();
    if (rows->text(0, 0).empty()) {
      return Error{ErrorCode::kUnavailable, address_.shown +
                                                ": synchronous_standby_names was emptied, so a commit did not wait for "
                                                "a standby, and is not acknowledged"};
    }
    if (rows->integer(0, 2).value_or(0) > 0) return {};
    upto = rows->text(0, 1);
    if (!connection.has_time()) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("{}: no synchronous standby had a commit within {} ms, and it is not acknowledged",
                               address_.shown, options_.deadline_ms)};
    }
    ::poll(nullptr, 0, kBetweenLooksMs);
  }
}

Result<void> PostgresLog::moved_to(const Extent& extent, std::uint64_t history_rows) {
  if (!options_.directory.empty()) {
    if (auto ok = head_file_.write({extent.head.seq, extent.head.hash}); !ok) return note_failure(ok.error());
  }
  const std::lock_guard lock(extent_mutex_);
  extent_ = extent;
  history_rows_ = history_rows;
  return {};
}

// Unlike an append it takes the log as it is by now: another server may have written since, and may not from now on.
Result<std::uint64_t> PostgresLog::take_epoch() {
  if (auto ok = writable(); !ok) return ok.error();
  const auto take = [&]() -> Result<std::pair<Extent, std::uint64_t>> {
    if (auto ok = writer_.run("BEGIN"); !ok) return ok.error();
    const auto row = load_log_row(writer_, true);
    if (!row) return row.error();
    if (!*row || (*row)->log_id != log_id_)
      return Error{ErrorCode::kCorrupt, address_.shown + ": the log was replaced by another one"};
    Extent to = (*row)->extent;
    ++to.head.epoch;
    if (auto ok = check_commits(writer_, address_.servers); !ok) return ok.error();
    const auto moved = writer_.run("UPDATE berth.log SET epoch = $1, checksum = $2 WHERE id = 1",
                                   PostgresValues().integer(to.head.epoch).bytes(bytes_of(checksum_of(to))));
    if (!moved) return moved.error();
    const auto rows = writer_.run("SELECT coalesce(max(cursor), 0) FROM berth.history");
    if (!rows) return rows.error();
    if (auto ok = writer_.run("COMMIT"); !ok) return ok.error();
    if (auto ok = acknowledged(writer_); !ok) return ok.error();
    return std::pair{to, static_cast<std::uint64_t>(rows->integer(0, 0).value_or(0))};
  };
  const auto taken = take();
  if (!taken) return note_failure(taken.error());
  if (auto ok = moved_to(taken->first, taken->second); !ok) return ok.error();
  return taken->first.head.epoch;
}

Head PostgresLog::last() const { return extent().head; }

std::uint64_t PostgresLog::first_seq() const { return extent().anchor_seq + 1; }

template <class Body>
auto PostgresLog::reading(const Body& body) const -> decltype(body(std::declval<PostgresConnection&>())) {
  const std::lock_guard lock(reader_mutex_);
  auto answer = body(reader_);
  if (!reader_.lost()) return answer;
  auto again = connect();
  if (!again) return again.error();
  reader_ = std::move(*again);
  return body(reader_);
}

Result<Hash> PostgresLog::hash_at(std::uint64_t seq) const {
  const Extent now = extent();
  if (seq == now.anchor_seq) return now.anchor_hash;
  if (seq < now.anchor_seq || seq > kMostInteger) return not_in_log(seq, now.anchor_seq + 1, now.head.seq);
  if (use_ == PostgresUse::kServe && seq > now.head.seq) return not_in_log(seq, now.anchor_seq + 1, now.head.seq);
  return reading([&](PostgresConnection& connection) -> Result<Hash> {
    const auto rows = connection.run(
        "SELECT hash, (SELECT head_seq FROM berth.log WHERE id = 1) FROM (SELECT $1::bigint AS seq) AS asked "
        "LEFT JOIN berth.records USING (seq)",
        PostgresValues().integer(seq));
    if (!rows) return rows.error();
    if (rows->integer(0, 1).value_or(0) < static_cast<std::int64_t>(seq))
      return not_in_log(seq, now.anchor_seq + 1, now.head.seq);
    if (!rows->bytes(0, 0)) return corrupt_record(seq, "missing");
    const auto hash = to_hash(rows->bytes(0, 0));
    if (!hash) return corrupt_record(seq, "its hash is damaged");
    return *hash;
  });
}

// A log that this process writes is shown up to what it has acknowledged: a commit of which the standby is not known to
// have it is visible in the database already.
Result<PostgresLog::Chunk> PostgresLog::read_chunk(std::uint64_t from_seq, const Hash& previous) const {
  return reading([&](PostgresConnection& connection) -> Result<Chunk> {
    Extent now = extent();
    if (use_ == PostgresUse::kRead) {
      const auto row = load_log_row(connection);
      if (!row) return row.error();
      if (!*row) return not_found(address_.shown + ": the log was removed");
      now = (*row)->extent;
    }
    if (from_seq <= now.anchor_seq || from_seq > now.head.seq + 1)
      return not_in_log(from_seq, now.anchor_seq + 1, now.head.seq);
    Chunk chunk;
    chunk.last_hash = previous;
    if (from_seq == now.head.seq + 1) return chunk;
    const std::uint64_t to_seq = std::min(now.head.seq, from_seq + kRecordsAtOnce - 1);
    const auto rows = connection.run(kRead, PostgresValues().integer(from_seq).integer(to_seq).integer(kBytesAtOnce));
    if (!rows) {
      if (rows.error().code != ErrorCode::kCorrupt) return rows.error();
      chunk.damage = corrupt_record(from_seq, rows.error().message);
      return chunk;
    }
    for (int i = 0; i < rows->count(); ++i) {
      const std::uint64_t seq = from_seq + static_cast<std::uint64_t>(i);
      auto record = checked_record(*rows, i, seq, reader_chain_, chunk.last_hash);
      if (!record) {
        chunk.damage = record.error();
        break;
      }
      chunk.records.push_back(std::move(*record));
    }
    if (rows->count() == 0) chunk.damage = corrupt_record(from_seq, "missing, and no row comes after it");
    if (!chunk.damage) return chunk;
    // Or was it cut off since the extent was read?
    const auto row = load_log_row(connection);
    if (!row) return row.error();
    if (*row && (*row)->log_id == log_id_ && (*row)->extent.anchor_seq >= from_seq)
      return not_in_log(from_seq, (*row)->extent.anchor_seq + 1, (*row)->extent.head.seq);
    return chunk;
  });
}

Result<void> PostgresLog::read(std::uint64_t from_seq, const Visitor& visitor) const {
  if (auto ok = usable(); !ok) return ok;
  const Extent now = extent();
  if (from_seq <= now.anchor_seq) return not_in_log(from_seq, now.anchor_seq + 1, now.head.seq);
  const auto previous = hash_at(from_seq - 1);
  if (!previous) {
    const bool absent = previous.error().code == ErrorCode::kNotFound;
    return absent ? not_in_log(from_seq, now.anchor_seq + 1, now.head.seq) : previous.error();
  }
  Hash before_next = *previous;
  while (true) {
    const auto chunk = read_chunk(from_seq, before_next);
    if (!chunk) return chunk.error();
    for (const Record& record : chunk->records) {
      const auto go_on = visitor(record);
      if (!go_on) return go_on.error();
      if (!*go_on) return {};
    }
    if (chunk->damage) return *chunk->damage;
    if (chunk->records.empty()) return {};
    from_seq += chunk->records.size();
    before_next = chunk->last_hash;
  }
}

Result<std::vector<std::uint64_t>> PostgresLog::checkpoints() const {
  return reading([&](PostgresConnection& connection) -> Result<std::vector<std::uint64_t>> {
    const auto rows = connection.run("SELECT DISTINCT seq FROM berth.checkpoints ORDER BY seq DESC");
    if (!rows) return rows.error();
    std::vector<std::uint64_t> seqs;
    for (int i = 0; i < rows->count(); ++i) seqs.push_back(static_cast<std::uint64_t>(rows->integer(i, 0).value_or(0)));
    return seqs;
  });
}

Result<Checkpoint> PostgresLog::load_one(std::uint64_t seq) const {
  return reading([&](PostgresConnection& connection) -> Result<Checkpoint> {
    const auto damaged = [&](std::string_view what) {
      return Error{ErrorCode::kCorrupt, fmt::format("{}: the checkpoint at {} {}", address_.shown, seq, what)};
    };
    Checkpoint checkpoint;
    checkpoint.seq = seq;
    std::optional<Hash> checksum;
    for (std::int64_t part = 0, parts = 1; part < parts; ++part) {
      const auto rows =
          connection.run("SELECT parts, head_hash, checksum, bytes FROM berth.checkpoints WHERE seq = $1 AND part = $2",
                         PostgresValues().integer(seq).integer(part));
      if (!rows) return rows.error();
      const auto head_hash = to_hash(rows->bytes(0, 1));
      checksum = to_hash(rows->bytes(0, 2));
      if (!rows->integer(0, 0) || !head_hash || !checksum) return damaged("lacks a part");
      parts = *rows->integer(0, 0);
      checkpoint.head_hash = *head_hash;
      checkpoint.bytes += rows->bytes(0, 3).value_or("");
    }
    if (checkpoint_checksum(seq, checkpoint.head_hash, checkpoint.bytes) != *checksum)
      return damaged("has a checksum that does not hold");
    return checkpoint;
  });
}

Result<void> PostgresLog::write_checkpoint(std::uint64_t seq, const Hash& hash, std::string_view bytes) {
  PostgresConnection& connection = checkpoint_writer_;
  if (connection.lost()) {
    auto again = connect();
    if (!again) return again.error();
    connection = std::move(*again);
  }
  if (auto ok = connection.run("BEGIN"); !ok) return ok.error();
  const auto ours = connection.run(
      kFoldedFrom, PostgresValues().text(log_id_).integer(extent().head.epoch).integer(seq).bytes(bytes_of(hash)));
  if (!ours) return ours.error();
  if (ours->count() == 0)
    return conflict(
        fmt::format("{}: the log is no longer the one that the checkpoint at {} was folded from: another server "
                    "has taken over, or it was replaced",
                    address_.shown, seq));
  if (auto ok = connection.run("DELETE FROM berth.checkpoints WHERE seq = $1", PostgresValues().integer(seq)); !ok)
    return ok.error();
  const Hash checksum = checkpoint_checksum(seq, hash, bytes);
  const std::size_t parts = std::max<std::size_t>(1, (bytes.size() + kCheckpointPart - 1) / kCheckpointPart);
  for (std::size_t part = 0; part < parts; ++part) {
    PostgresValues values;
    values.integer(seq).integer(std::uint64_t{part}).integer(std::uint64_t{parts});
    values.bytes(bytes_of(hash)).bytes(bytes_of(checksum));
    values.bytes(bytes.substr(part * kCheckpointPart, kCheckpointPart));
    if (auto ok = connection.run("INSERT INTO berth.checkpoints VALUES ($1, $2, $3, $4, $5, $6)", values); !ok)
      return ok.error();
  }
  const auto rows = connection.run("SELECT DISTINCT seq FROM berth.checkpoints ORDER BY seq DESC");
  if (!rows) return rows.error();
  std::vector<std::uint64_t> kept;
  for (int i = 0; i < rows->count(); ++i) kept.push_back(static_cast<std::uint64_t>(rows->integer(i, 0).value_or(0)));
  while (kept.size() > CheckpointFiles::kKept + CheckpointFiles::kOlder) {
    const std::size_t gone = most_dispensable(kept);
    if (auto ok = connection.run("DELETE FROM berth.checkpoints WHERE seq = $1", PostgresValues().integer(kept[gone]));
        !ok)
      return ok.error();
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(gone));
  }
  if (auto ok = connection.run("COMMIT"); !ok) return ok.error();
  return is_durable(connection);
}

Result<void> PostgresLog::save_checkpoint(std::uint64_t seq, std::string_view bytes) {
  if (auto ok = writable(); !ok) return ok;
  const auto hash = hash_at(seq);
  if (!hash) return note_damage(hash.error());
  const std::lock_guard lock(checkpoint_mutex_);
  const auto kept = checkpoints();
  if (!kept) return note_damage(kept.error());
  if (!kept->empty() && seq < kept->front())
    return invalid(fmt::format("a checkpoint at {} is newer than {}", kept->front(), seq));
  const auto written = write_checkpoint(seq, *hash, bytes);
  if (written) return {};
  checkpoint_writer_ = PostgresConnection();  // and with it a transaction without an end
  return note_damage(written.error());
}

Result<std::optional<Checkpoint>> PostgresLog::load_checkpoint() const {
  if (auto ok = usable(); !ok) return ok.error();
  const auto kept = checkpoints();
  if (!kept) return kept.error();
  std::vector<std::string> passed_over;
  for (const std::uint64_t seq : *kept) {
    auto loaded = load_one(seq);
    if (!loaded) {
      if (loaded.error().code != ErrorCode::kCorrupt) return loaded.error();
      passed_over.push_back(loaded.error().message);
      continue;
    }
    const auto hash = hash_at(seq);
    if (!hash) return corrupt_record(seq, fmt::format("a checkpoint says it was there: {}", hash.error().message));
    if (*hash != loaded->head_hash) return corrupt_record(seq, "its hash is not the one that a checkpoint of it says");
    loaded->passed_over = std::move(passed_over);
    return std::optional(std::move(*loaded));
  }
  const std::uint64_t anchor_seq = extent().anchor_seq;
  if (anchor_seq > 0) return corrupt_record(anchor_seq, "it was cut off, and no checkpoint that covers it loads");
  return std::optional<Checkpoint>();
}

Result<std::optional<Checkpoint>> PostgresLog::load_checkpoint_at(std::uint64_t seq) const {
  if (auto ok = usable(); !ok) return ok.error();
  const auto kept = checkpoints();
  if (!kept) return kept.error();
  for (const std::uint64_t one : *kept) {
    if (one > seq) continue;
    auto loaded = load_one(one);
    if (!loaded) continue;
    const auto hash = hash_at(one);
    if (hash && *hash == loaded->head_hash) return std::optional(std::move(*loaded));
  }
  return std::optional<Checkpoint>();
}

Result<std::vector<HistoryRow>> PostgresLog::history(const HistoryQuery& query) const {
  if (auto ok = usable(); !ok) return ok.error();
  std::uint64_t before = query.before;
  if (use_ == PostgresUse::kServe) {
    const std::lock_guard lock(extent_mutex_);
    before = std::min(before, history_rows_ + 1);
  }
  // One job has one row. Asked for in an order, it would be looked for in that order, row by row.
  const std::string sql = fmt::format(
      "SELECT cursor, job_id, finished_ms, bytes, hash FROM berth.history WHERE cursor > $1 AND cursor < $2 {} LIMIT "
      "$3",
      query.job_id ? "AND job_id = $4" : fmt::format("ORDER BY cursor {}", query.newest_first ? "DESC" : "ASC"));
  PostgresValues values;
  values.integer(clamped(query.after)).integer(clamped(before)).integer(clamped(query.limit));
  if (query.job_id) values.integer(clamped(*query.job_id));
  return reading([&](PostgresConnection& connection) -> Result<std::vector<HistoryRow>> {
    const auto rows = connection.run(sql.c_str(), values);
    if (!rows) return rows.error();
    std::vector<HistoryRow> found;
    for (int i = 0; i < rows->count(); ++i) {
      auto row = checked_history(*rows, i);
      if (!row) return row.error();
      found.push_back(std::move(*row));
    }
    return found;
  });
}

Result<void> PostgresLog::may_cut_before(std::uint64_t seq) const {
  const auto kept = checkpoints();
  if (!kept) return kept.error();
  if (kept->size() < CheckpointFiles::kKept || seq > (*kept)[CheckpointFiles::kKept - 1]) {
    return conflict(
        fmt::format("records before {} are needed: the log can be cut only below the older of two checkpoints", seq));
  }
  for (std::size_t i = 0; i < CheckpointFiles::kKept; ++i) {
    const auto loaded = load_one((*kept)[i]);
    if (!loaded) return loaded.error().code == ErrorCode::kCorrupt ? conflict(loaded.error().message) : loaded.error();
  }
  return {};
}

Result<void> PostgresLog::truncate_before(std::uint64_t seq) {
  if (auto ok = writable(); !ok) return ok;
  if (seq <= first_seq()) return {};
  if (auto ok = may_cut_before(seq); !ok) return broken(ok.error());
  while (first_seq() < seq) {
    const Extent from = extent();
    Extent to = from;
    to.anchor_seq = std::min(seq - 1, from.anchor_seq + kCutAtOnce);
    const auto hash = hash_at(to.anchor_seq);
    if (!hash) return broken(hash.error());
    to.anchor_hash = *hash;
    if (auto ok = change({from, to}); !ok) return broken(ok.error());
    if (auto ok = moved_to(to, history_rows_); !ok) return ok;
  }
  return {};
}

Counters PostgresLog::counters() const {
  const std::lock_guard lock(extent_mutex_);
  return counters_;
}

Result<void> PostgresLog::check_foreign() const {
  return reading([&](PostgresConnection& connection) -> Result<void> {
    if (auto ok = check_foreign_objects(connection); !ok) return ok;
    return check_foreign_rows(connection);
  });
}

Result<void> PostgresLog::finish_copy() {
  if (auto ok = writable(); !ok) return ok;
  const auto done = writer_.run("UPDATE berth.log SET unfinished = false WHERE id = 1 AND log_id = $1 RETURNING 1",
                                PostgresValues().text(log_id_));
  if (!done) return note_failure(done.error());
  if (done->count() != 1)
    return note_failure({ErrorCode::kConflict, address_.shown + ": the copy was removed or replaced before its end"});
  return acknowledged(writer_);
}

}  // namespace berth::store

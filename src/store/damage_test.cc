// Changed stored bytes are refused; if a record is hit, the error names its sequence number. Damaged data is never
// shown.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "model/event.h"
#include "store/database_edit.h"
#include "store/event_codec.h"
#include "store/log_test_records.h"
#include "store/temporary_directory.h"

namespace berth::store {
namespace {

constexpr std::uint64_t kRecords = 400;
constexpr std::size_t kPage = 4096;

// A closed log of kRecords records and ten history rows.
void write_log(const std::filesystem::path& directory, std::uint64_t records = kRecords) {
  const auto log = opened(directory);
  const std::uint64_t epoch = log->take_epoch().value();
  append_records(*log, epoch, records - 1);
  std::vector<HistoryRow> finished_jobs;
  for (std::uint64_t job = 1; job <= 10; ++job) finished_jobs.push_back({job, {7}, "what became of it"});
  REQUIRE(log->append(epoch, records, records_from(epoch, records, 1), finished_jobs));
}

// Opens and verifies the log. Returns the first error.
Result<ChainReport> open_and_verify(const std::filesystem::path& directory) {
  const auto log = SqliteLog::open(directory);
  if (!log) return log.error();
  return verify_chain(**log, {});
}

void check_refused(const std::filesystem::path& directory, std::string_view where) {
  const auto report = open_and_verify(directory);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::kCorrupt);
  CAPTURE(report.error().message);
  CHECK(report.error().message.find(where) != std::string::npos);
}

TEST_CASE("a change in any column of a record is refused at that record") {
  for (const char* change : {"payload = CAST(X'00' || substr(payload, 2) AS BLOB)", "payload = substr(payload, 2)",
                             "payload = CAST(payload || X'00' AS BLOB)", "hash = zeroblob(32)", "hash = zeroblob(31)",
                             "time_ms = time_ms + 1", "time_ms = time_ms | (1 << 62)", "kind = kind + 1",
                             "kind = kind + 65536", "version = version + 1", "version = version - 65536",
                             "epoch = epoch + 1", "epoch = -1", "seq = 100000", "seq = -17"}) {
    CAPTURE(change);
    const TemporaryDirectory directory;
    write_log(directory.path());
    edit_database(directory.path(), fmt::format("UPDATE records SET {} WHERE seq = 17", change));
    check_refused(directory.path(), std::string_view(change) == "seq = 100000" ? "record 400:" : "record 17:");
  }
}

TEST_CASE("spliced, swapped, dropped and added rows are refused at the first one that is wrong") {
  const std::pair<const char*, const char*> splices[] = {
      {"UPDATE records SET (payload, hash) = (SELECT payload, hash FROM records WHERE seq = 30) WHERE seq = 20",
       "record 20:"},
      {"UPDATE records SET seq = -20 WHERE seq = 20; UPDATE records SET seq = 20 WHERE seq = 21;"
       "UPDATE records SET seq = 21 WHERE seq = -20",
       "record 20:"},
      {"DELETE FROM records WHERE seq = 20", "record 20:"},
      {"DELETE FROM records WHERE seq < 20", "record 1:"},
      {"DELETE FROM records WHERE seq > 300", "record 400:"},
      {"DELETE FROM records", "record 400:"},
      {"INSERT INTO records SELECT seq + 1, epoch, time_ms, kind, version, payload, hash FROM records WHERE seq = 400",
       "record 400:"},
      {"UPDATE history SET bytes = X'00' WHERE cursor = 4", "history row 4:"},
      {"UPDATE history SET job_id = 99 WHERE cursor = 4", "history row 4:"},
      {"UPDATE extent SET epoch = 0", "begins and ends"},
      {"UPDATE extent SET head_seq = 399", "begins and ends"},
      {"DELETE FROM extent", "begins and ends"},
  };
  for (const auto& splice : splices) {
    CAPTURE(splice.first);
    const TemporaryDirectory directory;
    write_log(directory.path());
    edit_database(directory.path(), splice.first);
    check_refused(directory.path(), splice.second);
  }
}

TEST_CASE("a log that was rewritten with a sound chain is refused at the record that was acknowledged") {
  const TemporaryDirectory directory;
  const TemporaryDirectory other;
  write_log(directory.path());
  {
    const auto log = opened(other.path());
    log->take_epoch().value();
    append_records(*log, log->take_epoch().value(), kRecords);
  }
  std::filesystem::copy_file(other.path() / "log.db", directory.path() / "log.db",
                             std::filesystem::copy_options::overwrite_existing);
  check_refused(directory.path(), "record 400: its hash is not the one that was acknowledged");
}

TEST_CASE("a truncated database is refused, and says how far the log went") {
  const TemporaryDirectory directory;
  write_log(directory.path());
  const std::string whole = file_bytes(directory.path() / "log.db");
  for (const std::size_t size : {whole.size() - 1, whole.size() - kPage, whole.size() / 2, kPage, std::size_t{50}}) {
    CAPTURE(size);
    write_file(directory.path() / "log.db", whole.substr(0, size));
    // At most one byte of the last page may be missing, so that the database opens and a record in it is found damaged.
    check_refused(directory.path(), size + 1 == whole.size() ? "record 3" : "record 400");
  }
  std::filesystem::remove(directory.path() / "log.db");
  check_refused(directory.path(), "record 1: missing: 400 records up to 400 were acknowledged and are gone");
}

TEST_CASE("a damaged end of the write-ahead log is not taken for the remains of a crash") {
  const TemporaryDirectory directory;
  const TemporaryDirectory crashed;
  const auto log = opened(directory.path());
  const std::uint64_t epoch = log->take_epoch().value();
  for (int i = 0; i < 30; ++i) append_records(*log, epoch, 2);
  // The state after a kill: the database, its write-ahead log and the head file, with nothing moved or closed.
  const auto crash = [&](const std::string& wal) {
    std::filesystem::remove_all(crashed.path());
    std::filesystem::create_directory(crashed.path());
    for (const char* name : {"log.db", "head"})
      std::filesystem::copy_file(directory.path() / name, crashed.path() / name);
    write_file(crashed.path() / "log.db-wal", wal);
  };
  const std::string wal = file_bytes(directory.path() / "log.db-wal");
  crash(wal);
  {
    const auto looked_at = SqliteLog::open_read_only(crashed.path());
    REQUIRE(looked_at);
    CHECK(verify_chain(**looked_at, {}).value().records == 60);
  }
  CHECK(file_bytes(crashed.path() / "log.db-wal") == wal);  // reading changes nothing
  const auto sound = open_and_verify(crashed.path());
  REQUIRE(sound);
  CHECK(sound->records == 60);

  std::string flipped = wal;
  flipped[wal.size() / 2] ^= 1;
  for (const std::string& damaged :
       {flipped, wal.substr(0, wal.size() - 1), wal.substr(0, wal.size() / 2), std::string()}) {
    crash(damaged);
    check_refused(crashed.path(), "acknowledged");
  }
}

TEST_CASE("what a crash left in the write-ahead log is in the database before anybody builds on it") {
  const TemporaryDirectory directory;
  const TemporaryDirectory crashed;
  const auto log = opened(directory.path());
  append_records(*log, log->take_epoch().value(), 30);
  std::filesystem::create_directory(crashed.path());
  for (const char* name : {"log.db", "log.db-wal", "head"}) {
    std::filesystem::copy_file(directory.path() / name, crashed.path() / name);
  }
  REQUIRE(std::filesystem::file_size(crashed.path() / "log.db-wal") > 0);
  const auto reopened = opened(crashed.path());
  CHECK(std::filesystem::file_size(crashed.path() / "log.db-wal") == 0);
  CHECK(reopened->counters().fsyncs >= 3);  // the write-ahead log, the database, the head file
  CHECK(reopened->last() == log->last());
}

// After damage the log shows what it showed before, or an error.
void check_shows_nothing_wrong(const std::filesystem::path& directory, const ChainReport& before) {
  const auto report = open_and_verify(directory);
  if (!report) {
    CHECK(report.error().code == ErrorCode::kCorrupt);
    return;
  }
  CHECK(report->records == before.records);
  CHECK(report->head_hash == before.head_hash);
  CHECK(report->history_rows == before.history_rows);
}

TEST_CASE("what is in the database beside the log is found") {
  const std::pair<const char*, const char*> cases[] = {
      {"INSERT INTO records SELECT seq + 100000, epoch, time_ms, kind, version, payload, hash FROM records WHERE seq = "
       "7",
       "record 100007: a row behind the end of the log, which is 400"},
      {"CREATE TRIGGER t AFTER INSERT ON records BEGIN UPDATE records SET time_ms = 0 WHERE seq = 1; END",
       "not berth's: trigger t"},
      {"CREATE TABLE notes (text)", "not berth's: table notes"},
      {"CREATE VIEW all_of_it AS SELECT * FROM records", "not berth's: view all_of_it"},
      {"CREATE INDEX by_time ON records (time_ms)", "not berth's: index by_time"}};
  for (const auto& [change, what] : cases) {
    const TemporaryDirectory directory;
    write_log(directory.path());
    CHECK(SqliteLog::open_read_only(directory.path()).value()->check_foreign());
    edit_database(directory.path(), change);
    const auto found = SqliteLog::open_read_only(directory.path()).value()->check_foreign();
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::kCorrupt);
    CAPTURE(found.error().message);
    CHECK(found.error().message.find(what) != std::string::npos);
  }
}

TEST_CASE("a trigger that another program put into the database changes no record") {
  const TemporaryDirectory directory;
  write_log(directory.path());
  edit_database(directory.path(),
                "CREATE TRIGGER t AFTER INSERT ON records BEGIN UPDATE records SET time_ms = 0 WHERE seq = 1; END");
  const auto log = opened(directory.path());
  append_records(*log, log->take_epoch().value(), 1);
  CHECK(verify_chain(*log, {}));
}

TEST_CASE("a torn page, whichever it is, is refused") {
  const TemporaryDirectory directory;
  write_log(directory.path());
  const std::string whole = file_bytes(directory.path() / "log.db");
  const ChainReport before = open_and_verify(directory.path()).value();
  for (std::size_t page = 0; page < whole.size() / kPage; ++page) {
    for (const std::size_t half : {std::size_t{0}, kPage / 2}) {
      CAPTURE(page);
      CAPTURE(half);
      std::string torn = whole;
      torn.replace(page * kPage + half, kPage / 2, kPage / 2, '\0');
      write_file(directory.path() / "log.db", torn);
      check_shows_nothing_wrong(directory.path(), before);
      const auto log = SqliteLog::open_read_only(directory.path());
      const bool noticed = !log || !verify_chain(**log, {}) || !(*log)->check_pages();
      CHECK(noticed == (torn != whole));
    }
  }
}

TEST_CASE("a damaged page is told with what it left whole") {
  const TemporaryDirectory directory;
  write_log(directory.path());
  const std::string whole = file_bytes(directory.path() / "log.db");
  std::size_t of_records = 0;
  std::size_t of_history = 0;
  for (std::size_t page = 1; page < whole.size() / kPage; ++page) {
    CAPTURE(page);
    std::string damaged = whole;
    damaged.replace(page * kPage, kPage / 2, kPage / 2, '\xff');
    write_file(directory.path() / "log.db", damaged);
    const auto log = SqliteLog::open_read_only(directory.path());
    if (!log) continue;  // the extent itself is unreadable
    const auto report = verify_chain(**log, {});
    if (report) continue;  // an index that the check did not need
    const std::string& message = report.error().message;
    CAPTURE(message);
    const bool named = message.find("a page of the database is damaged") != std::string::npos;
    CHECK((named || message.starts_with("record ")));
    if (message.find("; the last record that can be read is ") != std::string::npos) ++of_records;
    if (message.starts_with("history behind row ")) {
      ++of_history;
      CHECK(message.find("records 1 to 400, all there are, are sound") != std::string::npos);
    }
  }
  CHECK(of_records > 3);
  CHECK(of_history > 0);
}

TEST_CASE("a flipped byte anywhere in the file never shows as something else") {
  const TemporaryDirectory directory;
  write_log(directory.path());
  const std::string whole = file_bytes(directory.path() / "log.db");
  const ChainReport before = open_and_verify(directory.path()).value();
  Random random(1);
  int refused = 0;
  constexpr int kFlips = 400;
  for (int i = 0; i < kFlips; ++i) {
    std::string flipped = whole;
    const std::size_t at = random.below(whole.size());
    CAPTURE(at);
    flipped[at] = static_cast<char>(flipped[at] ^ static_cast<char>(1 + random.below(255)));
    write_file(directory.path() / "log.db", flipped);
    check_shows_nothing_wrong(directory.path(), before);
    const auto log = SqliteLog::open_read_only(directory.path());
    refused += !log || !verify_chain(**log, {}) ? 1 : 0;
  }
  CHECK(refused > kFlips / 2);
}

struct CheckpointedLog {
  TemporaryDirectory directory;
  CheckpointedLog() {
    const auto log = opened(directory.path());
    append_records(*log, log->take_epoch().value(), 20);
    REQUIRE(log->save_checkpoint(8, "state at eight"));
    REQUIRE(log->save_checkpoint(15, "state at fifteen"));
  }
  std::filesystem::path file(int seq) const { return directory.path() / fmt::format("checkpoint-{:020}", seq); }
  void damage(int seq, std::size_t at) const {
    std::string bytes = file_bytes(file(seq));
    bytes[at] ^= 1;
    write_file(file(seq), bytes);
  }
};

TEST_CASE("a checkpoint with any byte damaged, or cut short, is passed over for the older one") {
  const CheckpointedLog made;
  const std::string whole = file_bytes(made.file(15));
  const auto check_falls_back = [&] {
    const auto log = opened(made.directory.path());
    const auto loaded = log->load_checkpoint();
    REQUIRE(loaded);
    REQUIRE(loaded->has_value());
    CHECK((*loaded)->seq == 8);
    CHECK((*loaded)->bytes == "state at eight");
    CHECK((*loaded)->passed_over.size() == 1);
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CAPTURE(at);
    made.damage(15, at);
    check_falls_back();
    write_file(made.file(15), whole);
  }
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{3}, std::size_t{0}}) {
    write_file(made.file(15), whole.substr(0, size));
    check_falls_back();
  }
}

TEST_CASE("with no checkpoint left a whole log is folded from its start, and one that was cut is refused") {
  const CheckpointedLog whole;
  whole.damage(8, 90);
  whole.damage(15, 90);
  const auto loaded = opened(whole.directory.path())->load_checkpoint();
  REQUIRE(loaded);
  CHECK_FALSE(loaded->has_value());

  const CheckpointedLog cut;
  REQUIRE(opened(cut.directory.path())->truncate_before(8));
  cut.damage(8, 90);
  cut.damage(15, 90);
  CHECK(opened(cut.directory.path())->load_checkpoint().error().code == ErrorCode::kCorrupt);
}

TEST_CASE("a checkpoint beyond the log's end, or of another log, is refused") {
  const CheckpointedLog made;
  const TemporaryDirectory shorter;
  {
    const auto log = opened(shorter.path());
    append_records(*log, log->take_epoch().value(), 10);
  }
  std::filesystem::copy_file(made.file(15), shorter.path() / made.file(15).filename());
  const auto beyond = opened(shorter.path())->load_checkpoint();
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == ErrorCode::kCorrupt);
  CHECK(beyond.error().message.starts_with("record 15:"));
  {
    const auto log = opened(shorter.path());
    append_records(*log, log->take_epoch().value(), 10);
  }
  CHECK(opened(shorter.path())->load_checkpoint().error().message.starts_with("record 15:"));
}

// A closed log in which `jobs` jobs finished one after the other, each with its history row.
void write_history(const std::filesystem::path& directory, std::uint64_t jobs) {
  const auto log = opened(directory);
  const std::uint64_t epoch = log->take_epoch().value();
  for (std::uint64_t job = 1; job <= jobs; ++job) {
    const EventRecord event{
        job, {1'700'000'000'000 + static_cast<std::int64_t>(job)}, JobFinished{JobId(job), {}, 0, {}}};
    const std::vector<HistoryRow> finished_jobs{{job, event.time, std::string(300, 'x')}};
    REQUIRE(log->append(epoch, job, std::vector<Record>{to_record(event, epoch)}, finished_jobs));
  }
}

std::string history_verdict(const std::filesystem::path& directory) {
  const auto log = SqliteLog::open(directory);
  REQUIRE(log);
  const auto verdict = verify_history(**log, {});
  return verdict ? "" : verdict.error().message;
}

TEST_CASE("a history from which rows were deleted, or with one too many, is refused: each finished job has its row") {
  const std::pair<const char*, const char*> edits[] = {
      {"SELECT 1", ""},
      {"DELETE FROM history WHERE job_id IN (5, 6, 7)",
       "history: job 5 has no row, and record 5 says that it finished"},
      {"DELETE FROM history WHERE job_id = 20", "history: job 20 has no row, and record 20 says that it finished"},
      {"DELETE FROM history", "history: job 1 has no row, and record 1 says that it finished"},
      {"UPDATE history SET cursor = -1 WHERE cursor = 3; UPDATE history SET cursor = 3 WHERE cursor = 4;"
       "UPDATE history SET cursor = 4 WHERE cursor = -1",
       "history row 3: it is of job 4, and record 3 says that job 3 finished"},
  };
  for (const auto& edit : edits) {
    CAPTURE(edit.first);
    const TemporaryDirectory directory;
    write_history(directory.path(), 20);
    edit_database(directory.path(), edit.first);
    CHECK_EQ(history_verdict(directory.path()), edit.second);
  }
}

// Numbers of the leaf pages of table history, in their order in the tree.
std::vector<std::size_t> history_pages(const std::filesystem::path& directory) {
  std::vector<std::size_t> pages;
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open_v2((directory / "log.db").c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const auto add = [](void* out, int, char** values, char**) {
    static_cast<std::vector<std::size_t>*>(out)->push_back(std::stoul(values[0]));
    return 0;
  };
  const char* sql = "SELECT pageno FROM dbstat WHERE name = 'history' AND pagetype = 'leaf' ORDER BY path";
  REQUIRE(sqlite3_exec(database, sql, add, &pages, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_close(database) == SQLITE_OK);
  return pages;
}

TEST_CASE("swapped pages of the history are refused, and the check comes to its end") {
  const TemporaryDirectory directory;
  write_history(directory.path(), 200);
  const std::vector<std::size_t> pages = history_pages(directory.path());
  REQUIRE(pages.size() > 3);
  std::string bytes = file_bytes(directory.path() / "log.db");
  const auto page = [&](std::size_t index) {
    return bytes.begin() + static_cast<std::ptrdiff_t>((pages[index] - 1) * kPage);
  };
  std::swap_ranges(page(1), page(1) + kPage, page(2));
  write_file(directory.path() / "log.db", bytes);
  const auto log = SqliteLog::open(directory.path());
  REQUIRE(log);
  std::uint64_t asked = 0;
  const auto report = verify_chain(**log, [&](std::uint64_t, std::uint64_t) { return ++asked < 1'000; });
  REQUIRE_FALSE(report);
  CHECK_EQ(name_of(report.error().code), name_of(ErrorCode::kCorrupt));
  CAPTURE(report.error().message);
  CHECK(report.error().message.find("it stands behind row") != std::string::npos);
}

TEST_CASE("nothing is appended once a file of the log was removed or replaced under it") {
  for (const char* name : {"log.db", "log.db-wal"}) {
    for (const bool is_replaced : {false, true}) {
      CAPTURE(name);
      CAPTURE(is_replaced);
      const TemporaryDirectory directory;
      const auto log = opened(directory.path());
      const std::uint64_t epoch = log->take_epoch().value();
      append_records(*log, epoch, 3);
      const std::string bytes = file_bytes(directory.path() / name);
      std::filesystem::rename(directory.path() / name, directory.path() / "aside");
      if (is_replaced) write_file(directory.path() / name, bytes);
      for (int again = 0; again < 2; ++again) {
        const auto appended = log->append(epoch, 4, records_from(epoch, 4, 1));
        REQUIRE_FALSE(appended);
        CHECK(appended.error().code == ErrorCode::kIo);
        CHECK(appended.error().message.find(std::string(name) + (is_replaced ? " was replaced" : " was removed")) !=
              std::string::npos);
      }
      CHECK(log->last().seq == 3);
    }
  }
}

}  // namespace
}  // namespace berth::store

// Checks the contract of store/log.h, sentence by sentence, on every implementation.

#include <doctest/doctest.h>

#include "store/hash_chain.h"
#include "store/log_test_records.h"
#include "store/memory_log.h"
#include "store/postgres_under_test.h"
#include "store/sqlite_log.h"
#include "store/temporary_directory.h"

namespace berth::store {
namespace {

struct MemoryUnderTest {
  MemoryLog memory;
  Log& log() { return memory; }
  void reopen() { memory.reopen(); }
};

struct SqliteUnderTest {
  TemporaryDirectory directory;
  std::unique_ptr<SqliteLog> sqlite = opened(directory.path());
  Log& log() { return *sqlite; }
  void reopen() {
    sqlite.reset();
    sqlite = opened(directory.path());
  }
};

// Where no PostgreSQL is to be had, a log in memory takes its place; get() says so.
struct PostgresUnderTest {
  std::optional<PostgresPlace> place;
  std::unique_ptr<PostgresLog> postgres;
  MemoryLog memory;
  PostgresUnderTest() {
    if (PostgresProcess* const process = PostgresProcess::get()) postgres = place.emplace(*process).open();
  }
  Log& log() {
    if (postgres) return *postgres;
    return memory;
  }
  void reopen() {
    if (!place) return memory.reopen();
    postgres.reset();
    postgres = place->open();
  }
};

#define LOGS MemoryUnderTest, SqliteUnderTest, PostgresUnderTest

TEST_CASE_TEMPLATE("an empty log ends at 0, with the zero hash, and begins at 1", Case, LOGS) {
  Case c;
  CHECK(c.log().last() == Head{});
  CHECK(c.log().first_seq() == 1);
  CHECK(seqs_from(c.log(), 1).empty());
  REQUIRE(c.log().load_checkpoint());
  CHECK_FALSE(c.log().load_checkpoint()->has_value());
}

TEST_CASE_TEMPLATE("what was appended is read back, in order, from any record on", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  append_records(c.log(), epoch, 3);
  append_records(c.log(), epoch, 4);
  std::vector<Record> seen;
  REQUIRE(c.log().read(1, [&](const Record& record) {
    seen.push_back(record);
    return true;
  }));
  CHECK(seen == records_from(epoch, 1, 7));
  CHECK(seqs_from(c.log(), 6) == std::vector<std::uint64_t>{6, 7});
  CHECK(seqs_from(c.log(), 8).empty());
}

TEST_CASE_TEMPLATE("a payload is bytes: empty, with zeros, large", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  const std::vector<std::string> payloads = {"", std::string("a\0b\xff", 4), std::string(3'000'000, 'x')};
  std::vector<Record> batch;
  for (const std::string& payload : payloads) batch.push_back({batch.size() + 1, epoch, {-5}, 65535, 0, payload});
  REQUIRE(c.log().append(epoch, 1, batch));
  c.reopen();
  std::vector<Record> seen;
  REQUIRE(c.log().read(1, [&](const Record& record) {
    seen.push_back(record);
    return true;
  }));
  CHECK(seen == batch);
}

TEST_CASE_TEMPLATE("the head hash is a function of the records alone", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  append_records(c.log(), epoch, 5);
  append_records(c.log(), epoch, 2);
  HashChain chain;
  Hash expected{};
  for (const Record& record : records_from(epoch, 1, 7)) expected = chain.next(expected, record);
  CHECK(c.log().last() == Head{7, epoch, expected});
}

TEST_CASE_TEMPLATE("append is refused when its first sequence number is not the next one", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  append_records(c.log(), epoch, 3);
  const Head before = c.log().last();
  for (const std::uint64_t wrong : {1U, 3U, 5U}) {
    const auto refused = c.log().append(epoch, wrong, records_from(epoch, wrong, 2));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kConflict);
  }
  CHECK(c.log().last() == before);
  append_records(c.log(), epoch, 1);
}

TEST_CASE_TEMPLATE("append is refused when its epoch is not the one in force", Case, LOGS) {
  Case c;
  CHECK(c.log().append(1, 1, records_from(1, 1, 1)).error().code ==
        ErrorCode::kConflict);  // the epoch is not taken yet
  const std::uint64_t older = c.log().take_epoch().value();
  append_records(c.log(), older, 2);
  const std::uint64_t newer = c.log().take_epoch().value();
  CHECK(newer == older + 1);
  CHECK(c.log().last().epoch == newer);
  CHECK(c.log().append(older, 3, records_from(older, 3, 1)).error().code == ErrorCode::kConflict);
  CHECK(c.log().append(newer + 1, 3, records_from(newer + 1, 3, 1)).error().code == ErrorCode::kConflict);
  CHECK(seqs_from(c.log(), 1) == std::vector<std::uint64_t>{1, 2});
  append_records(c.log(), newer, 1);
}

TEST_CASE_TEMPLATE("append is refused when a record carries another number or epoch, or when there is none", Case,
                   LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  std::vector<Record> batch = records_from(epoch, 1, 3);
  batch[2].seq = 7;
  CHECK(c.log().append(epoch, 1, batch).error().code == ErrorCode::kInvalid);
  batch = records_from(epoch, 1, 3);
  batch[1].epoch = 9;
  CHECK(c.log().append(epoch, 1, batch).error().code == ErrorCode::kInvalid);
  CHECK(c.log().append(epoch, 1, {}).error().code == ErrorCode::kInvalid);
  CHECK(c.log().last().seq == 0);
}

TEST_CASE_TEMPLATE("reopening continues where the log ended", Case, LOGS) {
  Case c;
  const std::uint64_t first_epoch = c.log().take_epoch().value();
  append_records(c.log(), first_epoch, 5);
  const Head before = c.log().last();
  c.reopen();
  CHECK(c.log().last() == before);
  const std::uint64_t epoch = c.log().take_epoch().value();
  CHECK(epoch == first_epoch + 1);
  append_records(c.log(), epoch, 5);
  CHECK(seqs_from(c.log(), 1).size() == 10);
}

TEST_CASE_TEMPLATE("read refuses what the log does not hold", Case, LOGS) {
  Case c;
  append_records(c.log(), c.log().take_epoch().value(), 3);
  CHECK(c.log().read(0, [](const Record&) { return true; }).error().code == ErrorCode::kNotFound);
  CHECK(c.log().read(5, [](const Record&) { return true; }).error().code == ErrorCode::kNotFound);
}

TEST_CASE_TEMPLATE("a visitor ends the read, passes on its error, and may use the log", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  append_records(c.log(), epoch, 5);
  int seen = 0;
  REQUIRE(c.log().read(1, [&](const Record&) { return ++seen < 2; }));
  CHECK(seen == 2);
  const auto stopped = c.log().read(1, [&](const Record& record) -> Result<bool> {
    if (record.seq == 3) return invalid("three");
    return true;
  });
  CHECK(stopped.error().message == "three");
  std::uint64_t last_seen = 0;
  REQUIRE(c.log().read(5, [&](const Record& record) {
    if (record.seq == 5) append_records(c.log(), epoch, 1);
    last_seen = record.seq;
    return true;
  }));
  CHECK(last_seen == 6);
}

TEST_CASE_TEMPLATE("history rows are kept with their batch, and found by job, cursor and order", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  const std::vector<HistoryRow> rows = {{10, {100}, "ten"}, {7, {101}, std::string("se\0ven", 6)}, {8, {102}, ""}};
  REQUIRE(c.log().append(epoch, 1, records_from(epoch, 1, 2), rows));
  REQUIRE(c.log().append(epoch, 3, records_from(epoch, 3, 1), std::vector<HistoryRow>{{11, {103}, "eleven"}}));
  c.reopen();
  CHECK(jobs_of(c.log(), {}) == std::vector<std::uint64_t>{10, 7, 8, 11});
  CHECK(jobs_of(c.log(), {.newest_first = true, .limit = 2}) == std::vector<std::uint64_t>{11, 8});
  CHECK(jobs_of(c.log(), {.after = 1, .limit = 2}) == std::vector<std::uint64_t>{7, 8});
  CHECK(jobs_of(c.log(), {.after = 1, .before = 4, .newest_first = true}) == std::vector<std::uint64_t>{8, 7});
  CHECK(jobs_of(c.log(), {.after = 9}).empty());
  CHECK(jobs_of(c.log(), {.before = 0}).empty());
  CHECK(jobs_of(c.log(), {.job_id = 99}).empty());
  CHECK(jobs_of(c.log(), {.job_id = 7, .after = 2}).empty());
  CHECK(jobs_of(c.log(), {.limit = 0}).empty());
  const auto seven = c.log().history({.job_id = 7});
  REQUIRE(seven);
  REQUIRE(seven->size() == 1);
  CHECK(seven->front() == HistoryRow{7, {101}, std::string("se\0ven", 6), 2});
}

TEST_CASE_TEMPLATE("a job retires once: a second row refuses the whole batch", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  REQUIRE(c.log().append(epoch, 1, records_from(epoch, 1, 1), std::vector<HistoryRow>{{7, {1}, "a"}}));
  const Head before = c.log().last();
  const std::vector<HistoryRow> again = {{8, {2}, "b"}, {7, {2}, "b"}};
  CHECK(c.log().append(epoch, 2, records_from(epoch, 2, 1), again).error().code == ErrorCode::kConflict);
  const std::vector<HistoryRow> twice = {{9, {2}, "b"}, {9, {2}, "b"}};
  CHECK(c.log().append(epoch, 2, records_from(epoch, 2, 1), twice).error().code == ErrorCode::kConflict);
  CHECK(c.log().last() == before);
  CHECK(jobs_of(c.log(), {}) == std::vector<std::uint64_t>{7});
  append_records(c.log(), epoch, 1);
}

TEST_CASE_TEMPLATE("the newest checkpoint is loaded, and two are kept", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  append_records(c.log(), epoch, 2);
  const Hash hash_at_2 = c.log().last().hash;
  REQUIRE(c.log().save_checkpoint(2, "state at two"));
  append_records(c.log(), epoch, 3);
  auto loaded = c.log().load_checkpoint();
  REQUIRE(loaded);
  REQUIRE(loaded->has_value());
  CHECK((*loaded)->seq == 2);
  CHECK((*loaded)->head_hash == hash_at_2);
  CHECK((*loaded)->bytes == "state at two");
  REQUIRE(c.log().save_checkpoint(4, std::string("state\0at four", 13)));
  REQUIRE(c.log().save_checkpoint(5, ""));
  c.reopen();
  loaded = c.log().load_checkpoint();
  REQUIRE(loaded);
  CHECK((*loaded)->seq == 5);
  CHECK((*loaded)->bytes.empty());
  CHECK((*loaded)->passed_over.empty());
}

TEST_CASE_TEMPLATE("a checkpoint must lie within the log and not before the newest one", Case, LOGS) {
  Case c;
  append_records(c.log(), c.log().take_epoch().value(), 5);
  CHECK(c.log().save_checkpoint(6, "x").error().code == ErrorCode::kNotFound);
  REQUIRE(c.log().save_checkpoint(4, "x"));
  CHECK(c.log().save_checkpoint(3, "x").error().code == ErrorCode::kInvalid);
  REQUIRE(c.log().save_checkpoint(4, "y"));
  CHECK((*c.log().load_checkpoint())->bytes == "y");
}

TEST_CASE_TEMPLATE("the log is cut only below the older of two checkpoints, and the rest still verifies", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  append_records(c.log(), epoch, 10);
  CHECK(c.log().truncate_before(3).error().code == ErrorCode::kConflict);
  REQUIRE(c.log().save_checkpoint(4, "four"));
  CHECK(c.log().truncate_before(3).error().code == ErrorCode::kConflict);
  REQUIRE(c.log().save_checkpoint(8, "eight"));
  CHECK(c.log().truncate_before(5).error().code == ErrorCode::kConflict);
  REQUIRE(c.log().truncate_before(4));
  REQUIRE(c.log().truncate_before(2));  // already gone
  c.reopen();
  CHECK(c.log().first_seq() == 4);
  CHECK(c.log().read(3, [](const Record&) { return true; }).error().code == ErrorCode::kNotFound);
  append_records(c.log(), c.log().take_epoch().value(), 1);
  const auto report = verify_chain(c.log(), {});
  REQUIRE(report);
  CHECK(report->records == 8);
  CHECK(report->first_seq == 4);
  CHECK(report->last_seq == 11);
  CHECK((*c.log().load_checkpoint())->seq == 8);
}

TEST_CASE_TEMPLATE("verify_chain reports a sound log and its progress", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  REQUIRE(c.log().append(epoch, 1, records_from(epoch, 1, 6), std::vector<HistoryRow>{{1, {1}, "one"}}));
  std::uint64_t checked = 0;
  std::uint64_t of = 0;
  const auto report = verify_chain(c.log(), [&](std::uint64_t done, std::uint64_t total) {
    checked = done;
    of = total;
    return true;
  });
  REQUIRE(report);
  CHECK(report->records == 6);
  CHECK(report->last_seq == 6);
  CHECK(report->head_hash == c.log().last().hash);
  CHECK(report->history_rows == 1);
  CHECK(checked == 6);
  CHECK(of == 6);
  const auto given_up = verify_chain(c.log(), [](std::uint64_t, std::uint64_t) { return false; });
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().code == ErrorCode::kUnavailable);
}

TEST_CASE_TEMPLATE("counters count batches, records, payload bytes, and one sync per batch", Case, LOGS) {
  Case c;
  const std::uint64_t epoch = c.log().take_epoch().value();
  append_records(c.log(), epoch, 1);
  const Counters before = c.log().counters();
  std::uint64_t bytes = 0;
  for (const Record& record : records_from(epoch, 2, 100)) bytes += record.payload.size();
  append_records(c.log(), epoch, 64);
  append_records(c.log(), epoch, 36);
  const Counters after = c.log().counters();
  CHECK(after.appends - before.appends == 2);
  CHECK(after.records - before.records == 100);
  CHECK(after.bytes - before.bytes == bytes);
  CHECK(after.fsyncs - before.fsyncs == 2);
}

}  // namespace
}  // namespace berth::store

// What is the log's on PostgreSQL alone: what it refuses and says to do, when a commit is not acknowledged, and what
// another server or an older database does to it.

#include "store/postgres_log.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "store/database_edit.h"
#include "store/event_codec.h"
#include "store/log_test_records.h"
#include "store/log_transfer.h"
#include "store/postgres_under_test.h"

namespace berth::store {
namespace {

bool says(const Error& error, std::string_view words) { return error.message.find(words) != std::string::npos; }

void check_says(const Error& error, ErrorCode code, std::string_view words) {
  CAPTURE(error.message);
  CHECK(error.code == code);
  CHECK(says(error, words));
}

Result<void> append_one(Log& log) {
  const Head head = log.last();
  return log.append(head.epoch, head.seq + 1, records_from(head.epoch, head.seq + 1, 1));
}

// A log with one epoch and this many records.
std::unique_ptr<PostgresLog> with_records(const PostgresPlace& place, std::uint64_t count) {
  auto log = place.open();
  append_records(*log, log->take_epoch().value(), count);
  return log;
}

// The server's settings as they are by default, whatever a test did to them.
struct Settings {
  explicit Settings(PostgresProcess& to) : server(to) {}
  ~Settings() {
    server.sql("ALTER SYSTEM RESET ALL");
    server.sql("SELECT pg_reload_conf()");
  }
  void set(const std::string& setting) const {
    server.sql("ALTER SYSTEM SET " + setting);
    server.sql("SELECT pg_reload_conf()");
  }
  PostgresProcess& server;
};

// Returns once a connection of the role of berth is in this state.
void wait_until(PostgresProcess& process, const std::string& state) {
  process.sql(
      "DO $$ BEGIN LOOP PERFORM pg_stat_clear_snapshot(); EXIT WHEN EXISTS (SELECT FROM pg_stat_activity WHERE usename "
      "= "
      "'berth' AND " +
      state + "); PERFORM pg_sleep(0.02); END LOOP; END $$");
}

PostgresConnection connected(const PostgresPlace& place) {
  auto connection =
      PostgresConnection::open(parse_postgres_address(place.server.socket(), PostgresUse::kServe).value(), 60'000);
  REQUIRE(connection);
  return std::move(*connection);
}

}  // namespace

TEST_CASE(
    "an address of PostgreSQL: no secret in it, TLS that proves beyond this machine, and only servers that write") {
  const auto refusal = [](const std::string& text) {
    const auto parsed = parse_postgres_address(text, PostgresUse::kServe);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::kInvalid);
    CHECK_FALSE(says(parsed.error(), "hush"));
    return parsed.error().message;
  };
  CHECK(refusal("postgresql://berth:hush@db/berth").find("password file") != std::string::npos);
  CHECK(refusal("postgresql://berth:hu%sh@db/berth").find("password file") != std::string::npos);
  CHECK(refusal("postgresql://berth:hush/hush@db/berth").find("password file") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?password=hush").find("password file") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?pass%77ord=hush").find("password file") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?pass%77ord=hu%sh").find("password file") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?sslpass%77ord=hush").find("password file") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?connect_timeout=0").find("connect_timeout=0") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?sslmode=require").find("sslmode=verify-full") != std::string::npos);
  CHECK(refusal("postgresql://berth@localhost/berth?hostaddr=10.0.0.1&sslmode=disable").find("10.0.0.1") !=
        std::string::npos);
  CHECK(refusal("postgresql://berth@db").find("name the database") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?target_session_attrs=standby").find("read-write") != std::string::npos);
  CHECK(refusal("postgresql://berth@db/berth?service=x").find("service") != std::string::npos);
  CHECK(refusal("sqlite:///x").find("postgresql://") != std::string::npos);
  const auto pair = parse_postgres_address("postgresql://berth@db1:5433,db2/berth", PostgresUse::kServe).value();
  CHECK(pair.servers == 2);
  CHECK(pair.shown == "postgresql://db1:5433,db2/berth");
  const auto has = [&](const char* key, const char* value) {
    return std::find(pair.parameters.begin(), pair.parameters.end(), std::pair<std::string, std::string>(key, value)) !=
           pair.parameters.end();
  };
  CHECK(has("target_session_attrs", "read-write"));
  CHECK(has("sslmode", "verify-full"));
  CHECK(parse_postgres_address("postgresql://berth@127.0.0.1/berth?sslmode=disable", PostgresUse::kServe));
  CHECK(parse_postgres_address("postgresql://berth@db/berth?target_session_attrs=any", PostgresUse::kRead));
}

TEST_CASE("an address of PostgreSQL: what the environment would add to it is refused") {
  for (const auto& [variable, address] : {std::pair{"PGHOST", "postgresql:///berth"},
                                          std::pair{"PGHOSTADDR", "postgresql://berth@localhost/berth?sslmode=disable"},
                                          std::pair{"PGSERVICE", "postgresql://berth@localhost/berth"}}) {
    CHECK(parse_postgres_address(address, PostgresUse::kServe));
    REQUIRE(::setenv(variable, "10.0.0.1", 1) == 0);
    const auto parsed = parse_postgres_address(address, PostgresUse::kServe);
    REQUIRE(::unsetenv(variable) == 0);
    REQUIRE_FALSE(parsed);
    check_says(parsed.error(), ErrorCode::kInvalid, std::string(variable) + " is set in the environment");
  }
}

TEST_CASE("PostgreSQL: a statement that is asked within the deadline of another has what that left of it") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  while (true) {  // on a busy machine the first one may take as long as both may
    PostgresConnection connection =
        PostgresConnection::open(parse_postgres_address(process->socket(), PostgresUse::kServe).value(), 5'000).value();
    if (!connection.run("SELECT pg_sleep(3)")) continue;
    CHECK(connection.run_on("SELECT pg_sleep(3)").error().code == ErrorCode::kUnavailable);
    break;
  }
}

TEST_CASE("PostgreSQL: a statement that waits for a lock ends with its connection") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  with_records(place, 1).reset();
  PostgresConnection other = connected(place);
  REQUIRE(other.run("BEGIN"));
  REQUIRE(other.run("SELECT 1 FROM berth.log FOR UPDATE"));
  for (int i = 0; i < 2; ++i) {
    PostgresOptions options = place.options();
    options.deadline_ms = 1'000;
    const auto log = PostgresLog::open(process->socket(), options).value();
    CHECK(log->take_epoch().error().code == ErrorCode::kUnavailable);
  }
  process->sql(
      "DO $$ BEGIN LOOP PERFORM pg_stat_clear_snapshot(); EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE "
      "usename "
      "= 'berth' AND wait_event_type = 'Lock'); PERFORM pg_sleep(0.05); END LOOP; END $$");
  REQUIRE(other.run("COMMIT"));
  CHECK(place.open()->last().epoch == 1);
}

TEST_CASE("PostgreSQL: one job is looked up in the history by its number, not row by row") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  auto log = with_records(place, 1);
  std::vector<HistoryRow> jobs;
  for (std::uint64_t job = 1; job <= 3'000; ++job) jobs.push_back({job, {1}, "what became of it"});
  REQUIRE(log->append(1, 2, records_from(1, 2, 1), jobs));
  log.reset();
  log = place.open();
  HistoryQuery query;
  query.job_id = 2'999;
  CHECK(jobs_of(*log, query) == std::vector<std::uint64_t>{2'999});
  query.newest_first = true;
  CHECK(jobs_of(*log, query) == std::vector<std::uint64_t>{2'999});
  log.reset();
  // What a connection has read is counted once it has ended.
  process->sql(
      "DO $$ BEGIN LOOP PERFORM pg_stat_clear_snapshot(); EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE "
      "usename "
      "= 'berth'); PERFORM pg_sleep(0.05); END LOOP; END $$");
  process->sql(
      "DO $$ BEGIN ASSERT (SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE relname = 'history' AND schemaname "
      "= "
      "'berth') < 1000; END $$");
}

TEST_CASE("PostgreSQL by TLS and a password file; a wrong password and no password are told apart from no server") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const std::string address = process->address();
  CHECK(PostgresLog::open(address, place.options()));
  const std::filesystem::path wrong = place.directory.path().parent_path() / "wrong";
  write_file(wrong, "*:*:*:*:hush\n");
  std::filesystem::permissions(wrong, std::filesystem::perms::owner_read);
  const std::string without = address.substr(0, address.find("&passfile="));
  const Error refused = place.refusal(without + "&passfile=" + wrong.string());
  check_says(refused, ErrorCode::kDenied, "password authentication failed");
  CHECK_FALSE(says(refused, "hush"));
  check_says(place.refusal(without + "&passfile=/nonexistent"), ErrorCode::kDenied, "password file of mode 0600");
  check_says(place.refusal("postgresql://berth@127.0.0.1:1/berth"), ErrorCode::kUnavailable, "127.0.0.1");
}

TEST_CASE("PostgreSQL: when a second server takes the epoch, the next append of the first is refused") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const auto first = with_records(place, 3);
  const TemporaryDirectory elsewhere;
  PostgresOptions options = place.options();
  options.directory = elsewhere.path();
  const auto second = PostgresLog::open(process->socket(), options).value();
  REQUIRE(append_one(*first));  // between the opening of the second and its epoch
  CHECK(second->take_epoch().value() == 2);
  CHECK(second->last().seq == 4);
  check_says(append_one(*first).error(), ErrorCode::kConflict, "epoch 1 is not in force; it is 2");
  REQUIRE(append_one(*second));
  CHECK(seqs_from(*second, 1).size() == 5);
  check_says(PostgresLog::open(process->socket(), place.options()).error(), ErrorCode::kConflict, "in use by");
}

TEST_CASE("PostgreSQL: another cluster's log, an older schema, an unfinished copy and a lost log are refused") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  with_records(place, 2).reset();
  process->sql("UPDATE berth.log SET schema_version = 0");
  check_says(place.refusal(), ErrorCode::kUnsupported, "schema version 0, this berth knows 1");
  process->sql("UPDATE berth.log SET schema_version = 1, unfinished = true");
  check_says(place.refusal(), ErrorCode::kConflict, "did not come to its end");
  check_says(PostgresLog::open_read_only(process->socket()).error(), ErrorCode::kConflict, "did not come to its end");
  process->sql("UPDATE berth.log SET unfinished = false, log_id = 'other'");
  check_says(place.refusal(), ErrorCode::kConflict, "the log of another cluster (other)");
  process->sql("DROP SCHEMA berth CASCADE");
  check_says(place.refusal(), ErrorCode::kConflict, "the database has no log");
  check_says(PostgresLog::open_read_only(process->socket()).error(), ErrorCode::kNotFound, "no log of berth");
  process->sql("CREATE SCHEMA berth AUTHORIZATION berth");
  process->sql("CREATE TABLE berth.log (what int)");
  process->sql("ALTER TABLE berth.log OWNER TO berth");
  check_says(place.refusal(), ErrorCode::kInvalid, "is not a log of berth");
}

TEST_CASE("PostgreSQL: a right that is missing is named with the command that grants it") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  process->sql("REVOKE CREATE ON DATABASE berth FROM berth");
  const Error refused = place.refusal();
  process->sql("GRANT CREATE ON DATABASE berth TO berth");
  check_says(refused, ErrorCode::kDenied, "GRANT CREATE ON DATABASE berth TO berth");
  place.open().reset();
  process->sql("REVOKE DELETE ON berth.records FROM berth");
  check_says(place.refusal(), ErrorCode::kDenied, "missing: records DELETE");
  check_says(place.refusal(), ErrorCode::kDenied,
             "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA berth TO berth");
  process->sql("ALTER SCHEMA berth OWNER TO super");
  check_says(place.refusal(), ErrorCode::kDenied, "GRANT USAGE ON SCHEMA berth TO berth");
}

TEST_CASE("PostgreSQL: a log whose making is being committed by another connection is taken as it is then") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  with_records(place, 3).reset();
  PostgresConnection other = connected(place);
  REQUIRE(other.run("ALTER SCHEMA berth RENAME TO hidden"));
  REQUIRE(other.run("BEGIN"));
  REQUIRE(other.run("ALTER SCHEMA hidden RENAME TO berth"));
  const TemporaryDirectory elsewhere;
  PostgresOptions options = place.options();
  options.directory = elsewhere.path();
  Result<std::unique_ptr<PostgresLog>> log = Error{};
  std::thread opening([&] { log = PostgresLog::open(process->socket(), options); });
  wait_until(*process, "wait_event_type = 'Lock'");
  REQUIRE(other.run("COMMIT"));
  opening.join();
  REQUIRE_MESSAGE(log.has_value(), (log ? "" : log.error().message));
  CHECK((*log)->last().seq == 3);
}

TEST_CASE("PostgreSQL: a log is made in an empty schema that an administrator made for its role") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  process->sql("CREATE SCHEMA berth");
  process->sql("GRANT USAGE ON SCHEMA berth TO berth");
  check_says(place.refusal(), ErrorCode::kDenied, "GRANT CREATE, USAGE ON SCHEMA berth TO berth");
  process->sql("GRANT CREATE ON SCHEMA berth TO berth");
  CHECK(with_records(place, 2)->last().seq == 2);
}

TEST_CASE("PostgreSQL: settings under which a crash loses commits are refused, at the opening and while it runs") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const Settings settings(*process);
  const auto log = with_records(place, 1);
  settings.set("synchronous_commit = off");
  for (int i = 0; i < 5'000 && append_one(*log); ++i) {  // until its connection has read the settings again
  }
  check_says(append_one(*log).error(), ErrorCode::kIo, "synchronous_commit is off");
  CHECK(log->take_epoch().error().code == ErrorCode::kIo);
  const TemporaryDirectory elsewhere;
  PostgresOptions options = place.options();
  options.directory = elsewhere.path();
  check_says(PostgresLog::open(process->socket(), options).error(), ErrorCode::kUnsupported,
             "ALTER ROLE berth SET synchronous_commit = on");
}

TEST_CASE("PostgreSQL: without fsync, and on an unlogged table, nothing is acknowledged") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const Settings settings(*process);
  auto log = with_records(place, 1);
  settings.set("fsync = off");
  for (int i = 0; i < 5'000 && append_one(*log); ++i) {  // until its connection has read the settings again
  }
  check_says(append_one(*log).error(), ErrorCode::kIo, "fsync is off");
  log.reset();
  process->sql("ALTER TABLE berth.records SET UNLOGGED");
  check_says(PostgresLog::open_read_only(process->socket()).value()->check_foreign().error(), ErrorCode::kUnsupported,
             "ALTER TABLE berth.records SET LOGGED");
  settings.set("fsync = on");
  Error refused = place.refusal();
  for (int i = 0; i < 500 && says(refused, "fsync"); ++i) refused = place.refusal();
  check_says(refused, ErrorCode::kUnsupported, "the table records is unlogged");
}

TEST_CASE("PostgreSQL: what an append meets that is not another writer's is told as what it is") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  {
    const PostgresPlace place(*process);
    const auto log = with_records(place, 2);
    process->sql("INSERT INTO berth.records VALUES (3, 1, 1, 1, 1, '', '')");
    check_says(append_one(*log).error(), ErrorCode::kCorrupt, "record 3: a row is there already, behind the end");
  }
  {
    const PostgresPlace place(*process);
    const auto log = with_records(place, 2);
    process->sql("ALTER TABLE berth.records ADD CHECK (seq < 3)");
    check_says(append_one(*log).error(), ErrorCode::kIo, "violates check constraint");
  }
  const PostgresPlace place(*process);
  const auto log = with_records(place, 2);
  PostgresConnection other = connected(place);
  REQUIRE(other.run("BEGIN"));
  REQUIRE(other.run("SELECT 1 FROM berth.log FOR UPDATE"));
  Result<void> appended;
  std::thread appending([&] { appended = append_one(*log); });
  wait_until(*process, "wait_event_type = 'Lock'");
  process->sql(
      "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'berth' AND wait_event_type = 'Lock'");
  appending.join();
  REQUIRE_FALSE(appended);
  check_says(appended.error(), ErrorCode::kUnavailable, "canceling statement");
}

TEST_CASE("PostgreSQL: a checkpoint is of the log and epoch that it was folded from, or is refused") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const auto first = with_records(place, 3);
  process->sql("UPDATE berth.log SET log_id = 'other' || log_id");
  check_says(first->save_checkpoint(3, "three").error(), ErrorCode::kConflict, "folded from");
  process->sql("UPDATE berth.log SET log_id = substr(log_id, 6)");
  REQUIRE(first->save_checkpoint(3, "three"));
  const TemporaryDirectory elsewhere;
  PostgresOptions options = place.options();
  options.directory = elsewhere.path();
  const auto second = PostgresLog::open(process->socket(), options).value();
  REQUIRE(second->take_epoch());
  check_says(first->save_checkpoint(3, "three").error(), ErrorCode::kConflict, "another server has taken over");
  REQUIRE(second->save_checkpoint(3, "three"));
}

TEST_CASE("PostgreSQL: what another server has cut off meanwhile is not in the log, and no damage") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const auto first = with_records(place, 9);
  const TemporaryDirectory elsewhere;
  PostgresOptions options = place.options();
  options.directory = elsewhere.path();
  const auto second = PostgresLog::open(process->socket(), options).value();
  REQUIRE(second->take_epoch());
  for (const std::uint64_t seq : {7U, 8U}) REQUIRE(second->save_checkpoint(seq, "state"));
  REQUIRE(second->truncate_before(6));
  CHECK(first->read(1, [](const Record&) { return true; }).error().code == ErrorCode::kNotFound);
}

TEST_CASE("PostgreSQL: damage is found where it is, and what is not berth's is refused") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const auto log = with_records(place, 9);
  REQUIRE(log->save_checkpoint(4, "four"));
  REQUIRE(log->save_checkpoint(8, "eight"));
  process->sql("UPDATE berth.checkpoints SET bytes = 'e1ght' WHERE seq = 8");
  const auto loaded = log->load_checkpoint();
  REQUIRE(loaded);
  CHECK((*loaded)->seq == 4);
  CHECK((*loaded)->passed_over.size() == 1);
  process->sql("UPDATE berth.records SET payload = 'x' WHERE seq = 5");
  std::uint64_t seen = 0;
  const auto read = log->read(1, [&](const Record& record) {
    seen = record.seq;
    return true;
  });
  check_says(read.error(), ErrorCode::kCorrupt, "record 5: its hash does not fit the chain");
  CHECK(seen == 4);
  process->sql("DELETE FROM berth.records WHERE seq = 7");
  check_says(log->read(6, [](const Record&) { return true; }).error(), ErrorCode::kCorrupt,
             "record 7: missing; in its place is 8");
  process->sql("INSERT INTO berth.records VALUES (99, 1, 1, 1, 1, '', '')");
  check_says(log->check_foreign().error(), ErrorCode::kCorrupt, "record 99: it is behind the end");
  process->sql("CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
  process->sql("CREATE TRIGGER t BEFORE INSERT ON berth.records EXECUTE FUNCTION public.f()");
  check_says(log->check_foreign().error(), ErrorCode::kCorrupt, "trigger t on records");
  const TemporaryDirectory elsewhere;
  PostgresOptions options = place.options();
  options.directory = elsewhere.path();
  check_says(PostgresLog::open(process->socket(), options).error(), ErrorCode::kCorrupt, "trigger t on records");
  process->sql("DROP FUNCTION public.f CASCADE");
}

TEST_CASE("PostgreSQL: a database that went back in time is found out by the file log.postgres-head") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  auto log = with_records(place, 3);
  process->sql("CREATE TABLE public.before AS SELECT * FROM berth.log");
  append_records(*log, 1, 2);
  log.reset();
  process->sql("DELETE FROM berth.records WHERE seq > 3");
  process->sql("DELETE FROM berth.log");
  process->sql("INSERT INTO berth.log SELECT * FROM public.before");
  process->sql("DROP TABLE public.before");
  check_says(place.refusal(), ErrorCode::kCorrupt,
             "record 4: missing: 2 records up to 5 were acknowledged and are gone");
  REQUIRE(std::filesystem::remove(place.directory.path() / "log.postgres-head"));
  CHECK(place.open()->warnings().size() == 1);
}

TEST_CASE("PostgreSQL: without an answer by the deadline an append is unknown, and nothing is written any more") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  with_records(place, 1).reset();
  PostgresOptions options = place.options();
  options.deadline_ms = 400;
  auto log = PostgresLog::open(process->socket(), options).value();
  PostgresConnection other = connected(place);
  REQUIRE(other.run("BEGIN"));
  REQUIRE(other.run("SELECT 1 FROM berth.log FOR UPDATE"));
  check_says(append_one(*log).error(), ErrorCode::kUnavailable, "no answer within 400 ms");
  check_says(append_one(*log).error(), ErrorCode::kIo, "until the log is opened again");
  CHECK(log->last().seq == 1);
  log.reset();
  REQUIRE(other.run("COMMIT"));
  const auto again = place.open();
  append_records(*again, again->take_epoch().value(), 1);
}

TEST_CASE("PostgreSQL: a checkpoint that is cut off at any statement fails alone; appends and the next one go on") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  for (const bool once_sent : {false, true}) {
    int left = 0;  // statements until the cut; 0: none
    PostgresOptions options = place.options();
    options.fault = [&](bool sent, int socket) {
      if (sent == once_sent && left > 0 && --left == 0) ::shutdown(socket, SHUT_RDWR);
    };
    const auto log = PostgresLog::open(process->socket(), options).value();
    REQUIRE(log->take_epoch());
    int failed = 0;
    for (int nth = 1; left == 0; ++nth) {
      CAPTURE(nth);
      REQUIRE(append_one(*log));
      const std::uint64_t seq = log->last().seq;
      left = nth;
      const auto saved = log->save_checkpoint(seq, "state");
      if (!saved) {
        ++failed;
        CHECK(saved.error().code == ErrorCode::kUnavailable);
        REQUIRE(append_one(*log));
        auto again = log->save_checkpoint(seq, "state");
        while (!again && again.error().code == ErrorCode::kConflict) again = log->save_checkpoint(seq, "state");
        REQUIRE(again);  // once the old connection has done or undone its own
      }
      CHECK((*log->load_checkpoint())->seq == seq);
    }
    CHECK(failed > 3);
  }
}

TEST_CASE("PostgreSQL: a checkpoint without an answer by the deadline fails alone") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  PostgresOptions options = place.options();
  options.deadline_ms = 1'000;
  const auto log = PostgresLog::open(process->socket(), options).value();
  append_records(*log, log->take_epoch().value(), 3);
  PostgresConnection other = connected(place);
  REQUIRE(other.run("BEGIN"));
  REQUIRE(other.run("LOCK TABLE berth.checkpoints"));
  check_says(log->save_checkpoint(3, "three").error(), ErrorCode::kUnavailable, "no answer within 1000 ms");
  REQUIRE(append_one(*log));
  REQUIRE(other.run("COMMIT"));
  REQUIRE(log->save_checkpoint(3, "three"));
  CHECK((*log->load_checkpoint())->bytes == "three");
}

TEST_CASE("PostgreSQL: a read goes on over a new connection, an append whose connection is lost does not") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const auto log = with_records(place, 3);
  process->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'berth'");
  CHECK(seqs_from(*log, 1).size() == 3);
  CHECK(append_one(*log).error().code == ErrorCode::kUnavailable);
  CHECK(append_one(*log).error().code == ErrorCode::kIo);
  CHECK(log->last().seq == 3);
}

namespace {

// Ten events of jobs in two epochs; two jobs finish.
void write_events(Log& log) {
  for (const int epoch : {1, 2}) {
    REQUIRE(log.take_epoch());
    for (int i = 1; i <= 5; ++i) {
      const std::uint64_t seq = log.last().seq + 1;
      const JobId job(static_cast<std::uint32_t>(epoch));
      const Event event = i == 3 ? Event(JobFinished{job, Outcome::kSucceeded, 0, {}}) : Event(CycleRan{});
      const Record record =
          to_record({seq, {static_cast<std::int64_t>(seq)}, event}, static_cast<std::uint64_t>(epoch));
      std::vector<HistoryRow> rows;
      if (i == 3) rows.push_back({static_cast<std::uint64_t>(epoch), {7}, "what became of it"});
      REQUIRE(log.append(static_cast<std::uint64_t>(epoch), seq, {&record, 1}, rows));
    }
  }
  REQUIRE(log.save_checkpoint(8, "eight"));
}

void check_copied(const Result<TransferReport>& copied, const Head& head) {
  REQUIRE_MESSAGE(copied.has_value(), (copied ? "" : copied.error().message));
  CHECK(copied->head == head);
  CHECK(copied->records == 10);
  CHECK(copied->history_rows == 2);
  CHECK(copied->checkpoint == 8);
}

}  // namespace

TEST_CASE("a log is copied from SQLite to PostgreSQL and back, with its numbers, epochs, hashes and history") {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  const std::string address = process->socket();
  const std::string directory = place.directory.path().string();
  Head head;
  {
    const auto log = opened(directory);
    write_events(*log);
    REQUIRE(log->take_epoch());
    head = log->last();
  }
  CHECK(head.epoch == 3);
  const LogPlace there{directory, address};
  check_says(open_log(there).error(), ErrorCode::kConflict, "has a log of its own, up to record 10");
  check_copied(transfer_log(directory, address), head);
  check_says(transfer_log(directory, address).error(), ErrorCode::kConflict, "the database has a log already");
  {
    const auto in_use = opened(directory);
    check_says(open_log(there).error(), ErrorCode::kConflict, "in use by");
    CHECK_FALSE(std::filesystem::exists(place.directory.path() / "log.postgres-head"));
  }
  {
    const auto log = open_log(there);
    REQUIRE_MESSAGE(log.has_value(), (log ? "" : log.error().message));
    CHECK((*log)->warnings().empty());  // its end is known by that of the directory's own log
    CHECK((*log)->last() == head);
    CHECK((*(*log)->load_checkpoint())->bytes == "eight");
  }
  check_says(open_log({directory, ""}).error(), ErrorCode::kConflict, "name that address");
  check_says(transfer_log(address, directory).error(), ErrorCode::kConflict, "has a log already");
  std::filesystem::remove(place.directory.path() / "log.db");
  const std::filesystem::path old_wal = place.directory.path() / "log.db-wal";
  write_file(old_wal, "what a crash left of the old log");
  write_file(place.directory.path() / "log.db-shm", "its index");
  check_says(transfer_log(address, directory).error(), ErrorCode::kConflict, "has a log already (log.db-wal)");
  std::filesystem::remove(old_wal);
  check_copied(transfer_log(address, directory), head);
  CHECK_FALSE(std::filesystem::exists(place.directory.path() / "log.db-shm"));
  const auto back = open_log({directory, ""});
  REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().message));
  CHECK((*back)->last() == head);
  CHECK((*back)->warnings().empty());
  CHECK((*(*back)->load_checkpoint())->bytes == "eight");
  CHECK(jobs_of(**back, {}) == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("a copy to a directory whose disk is full at any write is an error, or is whole") {
  const TemporaryDirectory source;
  const TemporaryDirectory target;
  {
    const auto log = opened(source.path());
    write_events(*log);
  }
  int failed = 0;
  for (int nth = 1, whole = 0; whole < 20; ++nth) {
    CAPTURE(nth);
    REQUIRE(nth < 1'000);
    REQUIRE(::setenv("BERTH_STORE_FAULT", fmt::format("write:{}:full", nth).c_str(), 1) == 0);
    const auto copied = transfer_log(source.path().string(), target.path().string());
    REQUIRE(::unsetenv("BERTH_STORE_FAULT") == 0);
    if (copied) {
      ++whole;
      const auto copy = open_log_read_only(target.path().string());
      REQUIRE_MESSAGE(copy.has_value(), (copy ? "" : copy.error().message));
      CHECK((*copy)->last() == copied->head);
      CHECK(verify_chain(**copy, {}));
    } else {
      ++failed;
      CHECK(copied.error().code == ErrorCode::kIo);
    }
    std::filesystem::remove_all(target.path());
  }
  CHECK(failed > 10);
}

TEST_CASE("a directory that is open to others is not taken for a server's by a folder named as the mark of its log") {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "store");
  std::filesystem::create_directories(directory.path() / "log.postgres");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  check_says(SqliteLog::open(directory.path()).error(), ErrorCode::kDenied, "it has other files");
  CHECK(std::filesystem::status(directory.path()).permissions() == std::filesystem::perms(0755));
}

// With a standby: what a COMMIT says is not all.
struct Pair {
  explicit Pair(PostgresProcess& process) : Pair(process, process.address()) {}
  Pair(PostgresProcess& process, const std::string& address) : place(process) {
    PostgresOptions options = place.options();
    options.deadline_ms = 30'000;
    log = PostgresLog::open(address, options).value();
    append_records(*log, log->take_epoch().value(), 1);
  }
  // Ends the wait of a commit for its standby by this, once one waits.
  void when_one_waits(const std::string& sql) const {
    wait_until(place.server, "wait_event = 'SyncRep'");
    place.server.sql(sql);
  }
  Error refused_append_while(const std::string& sql) {
    place.server.tell("stop-standby");
    Error refused;
    std::thread appending([&] {
      const auto done = append_one(*log);
      if (!done) refused = done.error();
    });
    when_one_waits(sql);
    appending.join();
    place.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'b'");
    place.server.sql("SELECT pg_reload_conf()");
    place.server.tell("start-standby");
    return refused;
  }

  PostgresPlace place;
  std::unique_ptr<PostgresLog> log;
};

TEST_CASE("a pair of PostgreSQL: a commit that did not wait for the standby to its end is not acknowledged") {
  PostgresProcess* const process = PostgresProcess::get(true);
  if (process == nullptr) return;
  {
    Pair pair(*process);
    const Error cancelled =
        pair.refused_append_while("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    check_says(cancelled, ErrorCode::kUnavailable, "came back with a warning, and is not acknowledged");
    CHECK(pair.log->last().seq == 1);
    CHECK(append_one(*pair.log).error().code == ErrorCode::kIo);
  }
  Pair pair(*process);
  const Error released =
      pair.refused_append_while("ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()");
  check_says(released, ErrorCode::kUnavailable, "synchronous_standby_names was emptied");
  CHECK(pair.log->last().seq == 1);
  CHECK(append_one(*pair.log).error().code == ErrorCode::kIo);
}

TEST_CASE(
    "a pair of PostgreSQL: a role that hears no warnings is told that a commit is local, also with one host named") {
  PostgresProcess* const process = PostgresProcess::get(true);
  if (process == nullptr) return;
  process->sql("ALTER ROLE berth SET client_min_messages = error");
  Pair pair(*process, process->socket());
  process->sql("ALTER ROLE berth RESET client_min_messages");
  const Error cancelled =
      pair.refused_append_while("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  check_says(cancelled, ErrorCode::kUnavailable, "came back with a warning, and is not acknowledged");
  CHECK(pair.log->last().seq == 1);
}

TEST_CASE("a pair of PostgreSQL: without a synchronous standby, or the right to see it, none is served") {
  PostgresProcess* const process = PostgresProcess::get(true);
  if (process == nullptr) return;
  const PostgresPlace place(*process);
  place.server.sql("REVOKE pg_read_all_stats FROM berth");
  const Error denied = place.refusal(process->address());
  place.server.sql("GRANT pg_read_all_stats TO berth");
  check_says(denied, ErrorCode::kDenied, "GRANT pg_read_all_stats TO berth");
  place.server.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
  place.server.sql("SELECT pg_reload_conf()");
  Error refused;
  for (int i = 0; i < 500 && refused.message.empty(); ++i) {  // until the server has read the settings again
    auto log = PostgresLog::open(process->address(), place.options());
    if (!log) refused = log.error();
  }
  place.server.sql("ALTER SYSTEM SET synchronous_standby_names = 'b'");
  place.server.sql("SELECT pg_reload_conf()");
  check_says(refused, ErrorCode::kUnavailable, "synchronous_standby_names is empty");
}

}  // namespace berth::store

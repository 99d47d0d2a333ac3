// Copies of a log, whole and cut after a record: what a backup and a restore are made with.

#include "store/log_copy.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "store/database_edit.h"
#include "store/hash_chain.h"
#include "store/log_test_records.h"
#include "store/temporary_directory.h"

namespace berth::store {
namespace {

// An empty directory beside the log.
std::filesystem::path target_of(const TemporaryDirectory& directory, const char* name = "copy") {
  const std::filesystem::path target = directory.path().parent_path() / name;
  REQUIRE(std::filesystem::create_directory(target));
  return target;
}

void append_with_history(Log& log, std::uint64_t epoch, std::uint64_t job) {
  const std::uint64_t seq = log.last().seq + 1;
  const std::vector<HistoryRow> finished{{job, {7}, "what became of it"}};
  REQUIRE(log.append(epoch, seq, records_from(epoch, seq, 1), finished));
}

// Ten records; the 5th finishes job 1, the 8th job 2.
std::uint64_t write_ten(SqliteLog& log) {
  const std::uint64_t epoch = log.take_epoch().value();
  append_records(log, epoch, 4);
  append_with_history(log, epoch, 1);
  append_records(log, epoch, 2);
  append_with_history(log, epoch, 2);
  append_records(log, epoch, 2);
  return epoch;
}

void check_cut(const Result<void>& cut) { REQUIRE_MESSAGE(cut.has_value(), (cut ? "" : cut.error().message)); }

}  // namespace

TEST_CASE("a copy that is made while a server writes has what was durable, and the server goes on") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path());
  const std::uint64_t epoch = write_ten(*log);
  const std::filesystem::path target = target_of(directory);
  REQUIRE(copy_database(directory.path(), target, {}));
  append_records(*log, epoch, 3);
  const auto copy = SqliteLog::open_read_only(target);
  REQUIRE(copy);
  CHECK((*copy)->last().seq == 10);
  CHECK((*copy)->last().hash == log->hash_at(10).value());
  CHECK(verify_chain(**copy, {}).value().history_rows == 2);
  struct stat status {};
  REQUIRE(::stat((target / "log.db").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600);
  CHECK_FALSE(std::filesystem::exists(target / "log.db-wal"));
}

TEST_CASE("a copy has the checkpoints that load, and names the damaged ones") {
  const TemporaryDirectory directory;
  {
    const auto log = opened(directory.path());
    write_ten(*log);
    for (const std::uint64_t seq : {3U, 6U, 9U}) REQUIRE(log->save_checkpoint(seq, "state"));
  }
  const auto damaged_file = directory.path() / "checkpoint-00000000000000000003";
  std::string bytes = file_bytes(damaged_file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(damaged_file, bytes);
  const std::filesystem::path target = target_of(directory);
  const auto damaged = copy_checkpoints(directory.path(), target, 8);
  REQUIRE(damaged);
  REQUIRE(damaged->size() == 1);
  CHECK(damaged->front().find("0003 is damaged") != std::string::npos);
  CHECK(std::filesystem::exists(target / "checkpoint-00000000000000000006"));
  CHECK_FALSE(std::filesystem::exists(target / "checkpoint-00000000000000000003"));
  CHECK_FALSE(std::filesystem::exists(target / "checkpoint-00000000000000000009"));
}

TEST_CASE("a log that is cut after a record ends there, and a server can go on from it") {
  const TemporaryDirectory directory;
  const std::filesystem::path target = target_of(directory);
  Hash sixth{};
  {
    const auto log = opened(directory.path());
    write_ten(*log);
    for (const std::uint64_t seq : {6U, 9U}) REQUIRE(log->save_checkpoint(seq, "state"));
    sixth = log->hash_at(6).value();
    REQUIRE(copy_checkpoints(directory.path(), target, 10));
    REQUIRE(copy_database(directory.path(), target, {}));
  }
  const std::vector<std::uint64_t> finished_later{2};
  check_cut(cut_after(target, 6, finished_later));
  REQUIRE(write_head(target, {6, 0, sixth}));
  const auto log = opened(target);
  CHECK(log->warnings().empty());
  CHECK(log->last().seq == 6);
  CHECK(log->last().hash == sixth);
  CHECK(log->last().epoch == 1);
  CHECK(jobs_of(*log, {}) == std::vector<std::uint64_t>{1});
  CHECK(log->load_checkpoint().value()->seq == 6);
  CHECK(log->check_foreign());
  append_records(*log, log->take_epoch().value(), 2);
  CHECK(verify_chain(*log, {}).value().last_seq == 8);
}

TEST_CASE("a log cannot be cut where it has no record") {
  const TemporaryDirectory directory;
  write_ten(*opened(directory.path()));
  for (const std::uint64_t seq : {0U, 11U}) {
    const auto cut = cut_after(directory.path(), seq, {});
    REQUIRE_FALSE(cut);
    CHECK(cut.error().code == ErrorCode::kNotFound);
  }
}

TEST_CASE("a copy onto a full disk is an error that says so") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path());
  append_records(*log, log->take_epoch().value(), 2000);
  const std::filesystem::path target = target_of(directory);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64 * 1024, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto copied = copy_database(directory.path(), target, {});
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE_FALSE(copied);
  CHECK(copied.error().code == ErrorCode::kIo);
}

TEST_CASE("a copy is given up where its caller says so") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path());
  append_records(*log, log->take_epoch().value(), 20'000);
  const auto copied = copy_database(directory.path(), target_of(directory), [] { return false; });
  REQUIRE_FALSE(copied);
  CHECK(copied.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("a damaged page and a directory without a log are refused") {
  const TemporaryDirectory directory;
  CHECK(copy_database(directory.path(), target_of(directory), {}).error().code == ErrorCode::kNotFound);
  {
    const auto log = opened(directory.path());
    append_records(*log, log->take_epoch().value(), 2000);
  }
  std::string bytes = file_bytes(directory.path() / "log.db");
  bytes.resize(bytes.size() / 2);
  write_file(directory.path() / "log.db", bytes);
  const auto copied = copy_database(directory.path(), target_of(directory, "second"), {});
  REQUIRE_FALSE(copied);
  CHECK(copied.error().code == ErrorCode::kCorrupt);
}

}  // namespace berth::store

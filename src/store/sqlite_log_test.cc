// Tests of what the durable log adds to the contract: its directory, lock, schema and costs.

#include "store/sqlite_log.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "store/data_directory.h"
#include "store/database_edit.h"
#include "store/log_test_records.h"
#include "store/temporary_directory.h"

namespace berth::store {
namespace {

TEST_CASE("the data directory is made for its owner alone") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path());
  struct stat status {};
  REQUIRE(::stat(directory.path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0700U);
}

TEST_CASE("a data directory that was open to others is closed, if it is empty or has a log") {
  const TemporaryDirectory directory;
  const auto mode = [&] {
    struct stat status {};
    REQUIRE(::stat(directory.path().c_str(), &status) == 0);
    return status.st_mode & 0777U;
  };
  std::filesystem::create_directory(directory.path());
  ::chmod(directory.path().c_str(), 0755);
  { const auto log = opened(directory.path()); }
  CHECK(mode() == 0700U);
  ::chmod(directory.path().c_str(), 0775);
  { const auto log = opened(directory.path()); }
  CHECK(mode() == 0700U);
}

TEST_CASE("a data directory that is open to others and has other files is refused") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path());
  std::filesystem::create_directory(directory.path() / "home");
  ::chmod(directory.path().c_str(), 0755);
  const auto log = SqliteLog::open(directory.path());
  REQUIRE_FALSE(log);
  CHECK(log.error().code == ErrorCode::kDenied);
  CHECK(log.error().message.find("0755") != std::string::npos);
  CHECK(log.error().message.find("chmod 700") != std::string::npos);
  ::chmod(directory.path().c_str(), 0700);
  CHECK(SqliteLog::open(directory.path()));
}

TEST_CASE("a second server on one data directory is refused, and told which process holds it") {
  const TemporaryDirectory directory;
  auto first = opened(directory.path());
  const auto second = SqliteLog::open(directory.path());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kConflict);
  CHECK(second.error().message.find("in use by process " + std::to_string(::getpid())) != std::string::npos);
  append_records(*first, first->take_epoch().value(), 2);
  first.reset();
  CHECK(opened(directory.path())->last().seq == 2);
}

TEST_CASE("the lock that a dead server has left to a process it was starting is waited for") {
  const TemporaryDirectory directory;
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  REQUIRE(::waitpid(dead, nullptr, 0) == dead);
  pid_t child = 0;
  {
    const auto killed = DataDirectory::take(directory.path());
    REQUIRE(killed);
    std::ofstream(directory.path() / "lock") << dead << "\n";
    child = ::fork();
    if (child == 0) {
      ::usleep(200'000);
      ::_exit(0);
    }
  }
  CHECK(DataDirectory::take(directory.path()));
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("where the lock does not hold, the stored epoch still keeps two writers apart") {
  const TemporaryDirectory directory;
  const auto older = opened(directory.path());
  const std::uint64_t epoch = older->take_epoch().value();
  append_records(*older, epoch, 2);
  std::filesystem::remove(directory.path() / "lock");  // as on a file system without locks
  const auto newer = opened(directory.path());
  const std::uint64_t newer_epoch = newer->take_epoch().value();
  const auto refused = older->append(epoch, 3, records_from(epoch, 3, 1));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConflict);
  CHECK(refused.error().message.find("another writer has taken over") != std::string::npos);
  append_records(*newer, newer_epoch, 1);
  CHECK(seqs_from(*older, 1).size() == 3);
}

TEST_CASE("a database of a newer schema, or of somebody else's, is refused and left as it is") {
  const TemporaryDirectory directory;
  opened(directory.path()).reset();
  edit_database(directory.path(), "PRAGMA user_version = 2");
  const auto newer = SqliteLog::open(directory.path());
  REQUIRE_FALSE(newer);
  CHECK(newer.error().code == ErrorCode::kUnsupported);
  CHECK(newer.error().message.find("schema version 2") != std::string::npos);
  CHECK(SqliteLog::open_read_only(directory.path()).error().code == ErrorCode::kUnsupported);

  std::filesystem::remove(directory.path() / "log.db");
  edit_database(directory.path(), "CREATE TABLE theirs (a); PRAGMA user_version = 1",
                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const std::string before = file_bytes(directory.path() / "log.db");
  CHECK(SqliteLog::open(directory.path()).error().code == ErrorCode::kInvalid);
  CHECK(file_bytes(directory.path() / "log.db") == before);
}

TEST_CASE("a reader sees a log that a server writes, and may not write it") {
  const TemporaryDirectory directory;
  const auto server = opened(directory.path());
  const std::uint64_t epoch = server->take_epoch().value();
  append_records(*server, epoch, 5);
  const auto reader = SqliteLog::open_read_only(directory.path());
  REQUIRE(reader);
  append_records(*server, epoch, 1);
  CHECK((*reader)->last().seq == 5);
  CHECK(seqs_from(**reader, 1).size() == 6);
  CHECK((*reader)->append(epoch, 7, records_from(epoch, 7, 1)).error().code == ErrorCode::kDenied);
  CHECK((*reader)->take_epoch().error().code == ErrorCode::kDenied);
  CHECK((*reader)->save_checkpoint(5, "").error().code == ErrorCode::kDenied);
  CHECK((*reader)->truncate_before(2).error().code == ErrorCode::kDenied);
  CHECK(SqliteLog::open_read_only(directory.path() / "none").error().code == ErrorCode::kNotFound);
}

TEST_CASE("older checkpoints are kept for reads of the past, spread over the log, and never many") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path());
  const std::uint64_t epoch = log->take_epoch().value();
  constexpr std::uint64_t kCheckpoints = 200;
  for (std::uint64_t i = 1; i <= kCheckpoints; ++i) {
    append_records(*log, epoch, 1);
    REQUIRE(log->save_checkpoint(i, "state at " + std::to_string(i)));
  }
  std::vector<std::uint64_t> seqs;
  for (std::uint64_t seq = kCheckpoints; seq > 0;) {
    const auto found = log->load_checkpoint_at(seq);
    REQUIRE(found);
    if (!found->has_value()) break;
    CHECK((*found)->bytes == "state at " + std::to_string((*found)->seq));
    seqs.push_back((*found)->seq);
    seq = (*found)->seq - 1;
  }
  CHECK(seqs.size() == CheckpointFiles::kKept + CheckpointFiles::kOlder);
  CHECK(seqs[0] == kCheckpoints);
  CHECK(seqs[1] == kCheckpoints - 1);
  for (std::size_t i = 1; i < seqs.size(); ++i)
    CHECK(seqs[i - 1] - seqs[i] <= 3 * kCheckpoints / CheckpointFiles::kOlder);
  CHECK(seqs.back() <= 3 * kCheckpoints / CheckpointFiles::kOlder);
}

TEST_CASE("another thread reads, and saves checkpoints, while the writer appends") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path(), {.wal_pages = 20});
  const std::uint64_t epoch = log->take_epoch().value();
  append_records(*log, epoch, 1);
  std::uint64_t read_last = 0;
  bool sound = true;
  std::thread reader([&] {
    while (read_last < 300) {
      const std::uint64_t acknowledged = log->last().seq;
      const auto read = log->read(1, [&](const Record& record) {
        sound = sound && record == record_at(epoch, record.seq);
        read_last = record.seq;
        return true;
      });
      sound = sound && read && read_last >= acknowledged && log->save_checkpoint(acknowledged, "state");
    }
  });
  for (int i = 0; i < 150; ++i) append_records(*log, epoch, 2);
  reader.join();
  CHECK(sound);
}

TEST_CASE("one batch costs one sync, whatever its size, and moving the write-ahead log is rare") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path());
  const std::uint64_t epoch = log->take_epoch().value();
  append_records(*log, epoch, 1);
  const std::uint64_t before = log->counters().fsyncs;
  for (int i = 0; i < 100; ++i) append_records(*log, epoch, 64);
  const std::uint64_t syncs = log->counters().fsyncs - before;
  CHECK(syncs >= 100);
  CHECK(syncs <= 110);
}

TEST_CASE("a hundred thousand records are read back in one pass over the file") {
  const TemporaryDirectory directory;
  {
    const auto log = opened(directory.path());
    const std::uint64_t epoch = log->take_epoch().value();
    for (int i = 0; i < 100; ++i) append_records(*log, epoch, 1000);
  }
  const std::uint64_t pages = std::filesystem::file_size(directory.path() / "log.db") / 4096;
  const auto log = opened(directory.path());
  const std::uint64_t before = log->file_reads();
  const auto report = verify_chain(*log, {});
  REQUIRE(report);
  CHECK(report->records == 100'000);
  // Each page once, and a few of the tree's inner pages again.
  CHECK(log->file_reads() - before < pages + pages / 20 + 50);
}

TEST_CASE("a copy made beside the running server opens and verifies") {
  const TemporaryDirectory directory;
  const auto log = opened(directory.path());
  append_records(*log, log->take_epoch().value(), 50);
  const std::filesystem::path copy = directory.path().parent_path() / "copy";
  std::filesystem::create_directory(copy);
  edit_database(directory.path(), "VACUUM INTO '" + (copy / "log.db").string() + "'", SQLITE_OPEN_READONLY);
  append_records(*log, log->last().epoch, 1);
  const auto restored = opened(copy);
  CHECK(restored->last().seq == 50);
  CHECK(verify_chain(*restored, {}));
  CHECK(restored->check_pages());
}

TEST_CASE("a disk fault is read from its three parts, and anything else is refused") {
  const auto fault = parse_disk_fault("fsync:3:eio");
  REQUIRE(fault);
  CHECK(fault->operation == DiskOperation::kFsync);
  CHECK(fault->nth == 3);
  CHECK(fault->action == DiskAction::kEio);
  CHECK(parse_disk_fault("write:7:short"));
  CHECK(parse_disk_fault("write:5:kill"));
  for (const char* text : {"", "write", "write:1", "write:0:eio", "write:x:eio", "write:1x:eio", "write:-1:eio",
                           "read:1:eio", "fsync:1:short", "fsync:1:full", "write:1:", "write:1:eio:2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_disk_fault(text));
  }
}

TEST_CASE("after the first failure nothing is written or synced any more, though it would work again") {
  Disk disk(parse_disk_fault("fsync:2:eio").value(), 0);
  CHECK(disk.next_write("a") == DiskStep::kGo);
  CHECK(disk.next_sync("a") == DiskStep::kGo);
  CHECK_FALSE(disk.failed());
  CHECK(disk.next_sync("a") == DiskStep::kFail);
  CHECK(disk.failed());
  CHECK(disk.next_sync("a") == DiskStep::kFail);
  CHECK(disk.next_write("a") == DiskStep::kFail);
  CHECK(disk.fsyncs() == 2);
}

TEST_CASE("the environment asks for a fault too, and a misspelt one is refused") {
  const TemporaryDirectory directory;
  ::setenv("BERTH_STORE_FAULT", "write:1:eoi", 1);
  CHECK(SqliteLog::open(directory.path()).error().code == ErrorCode::kInvalid);
  ::setenv("BERTH_STORE_FAULT", "write:1:eio", 1);
  CHECK(SqliteLog::open(directory.path()).error().code == ErrorCode::kIo);
  ::unsetenv("BERTH_STORE_FAULT");
  CHECK(SqliteLog::open(directory.path()));
}

}  // namespace
}  // namespace berth::store

// The crash sweep: a child process works on a log and is failed, killed or cut off from power at its n-th write or
// sync, or at its n-th statement where the log is on PostgreSQL, for every n until it completes. Then everything that
// it had acknowledged must be there, in whole batches, with a valid chain, and the log must go on from it.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "store/log_test_records.h"
#include "store/postgres_under_test.h"
#include "store/temporary_directory.h"

namespace berth::store {
namespace {

// What was acknowledged to the child: each line in the pipe is a call that returned success.
struct Acknowledged {
  std::uint64_t epoch = 0;
  std::uint64_t seq = 0;
  std::uint64_t checkpoint = 0;
  std::uint64_t cut_before = 0;
  bool finished = false;
};

struct Line {
  char what;
  std::uint64_t value;
};

// The size of a batch follows from where it begins, so that a half-written batch shows. One history row is written with
// each batch.
std::uint64_t batch_size(std::uint64_t first_seq) { return 1 + first_seq % 4; }

class Child {
 public:
  Child(int pipe, bool needs_checkpoints) : pipe_(pipe), needs_checkpoints_(needs_checkpoints) {}

  // Returns false if the log failed and then refuses everything.
  bool work(Log& log, int batches) const {
    const auto epoch = log.take_epoch();
    if (!tell('e', epoch.has_value(), epoch ? *epoch : 0)) return still_refused(log);
    bool whole = true;
    for (int i = 0; i < batches; ++i) {
      if (!append_batch(log, *epoch)) return still_refused(log);
      const std::uint64_t seq = log.last().seq;
      if (i % 4 == 3 && !tell('c', log.save_checkpoint(seq, fmt::format("state at {}", seq)).has_value(), seq)) {
        if (needs_checkpoints_) return still_refused(log);
        whole = false;
      }
    }
    const std::uint64_t cut = log.first_seq() + 2;
    const auto done = log.truncate_before(cut);
    // A child with a short log may not have two checkpoints yet, below which it could truncate.
    const bool refused = !done && done.error().code == ErrorCode::kConflict;
    if (!refused && !tell('t', done.has_value(), cut)) return still_refused(log);
    return (append_batch(log, *epoch) || still_refused(log)) && whole;
  }

 private:
  bool append_batch(Log& log, std::uint64_t epoch) const {
    const std::uint64_t first_seq = log.last().seq + 1;
    const std::uint64_t count = batch_size(first_seq);
    const HistoryRow finished_job{first_seq, {1}, "job that ended with it"};
    return tell('s',
                log.append(epoch, first_seq, records_from(epoch, first_seq, count), {&finished_job, 1}).has_value(),
                first_seq + count - 1);
  }

  // A failed log never acknowledges anything again.
  bool still_refused(Log& log) const {
    const std::uint64_t next = log.last().seq + 1;
    const std::uint64_t epoch = log.last().epoch;
    const auto again = log.append(epoch, next, records_from(epoch, next, 1));
    if (again || again.error().code != ErrorCode::kIo) tell('!', true, next);
    return false;
  }

  bool tell(char what, bool succeeded, std::uint64_t value) const {
    const Line line{what, value};
    if (succeeded && ::write(pipe_, &line, sizeof(line)) != sizeof(line)) ::_exit(3);
    return succeeded;
  }

  int pipe_;
  bool needs_checkpoints_;  // false: a log goes on after one that failed
};

// Of a child: its statement was the n-th. It may have come to its end all the same, by an answer that was on its way,
// or by a second read.
bool met_its_fault = false;

// What a child works on: opens its log, with the fault that it is to meet. Null: the opening failed.
using OpenFaulty = std::function<std::unique_ptr<DurableLog>()>;

Acknowledged run_child(const OpenFaulty& open, int batches, bool needs_checkpoints = true) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    const auto log = open();
    ::_exit(log && Child(ends[1], needs_checkpoints).work(*log, batches) && !met_its_fault ? 0 : 1);
  }
  ::close(ends[1]);
  Acknowledged acknowledged;
  Line line{};
  while (::read(ends[0], &line, sizeof(line)) == sizeof(line)) {
    CHECK_MESSAGE(line.what != '!', "a failed log took record ", line.value);
    if (line.what == 'e') acknowledged.epoch = line.value;
    if (line.what == 's') acknowledged.seq = line.value;
    if (line.what == 'c') acknowledged.checkpoint = line.value;
    if (line.what == 't') acknowledged.cut_before = line.value;
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const bool ended = WIFEXITED(status) && WEXITSTATUS(status) <= 1;
  REQUIRE((killed || ended));
  acknowledged.finished = ended && WEXITSTATUS(status) == 0;
  return acknowledged;
}

// A log may end only where a batch does.
bool ends_a_batch(std::uint64_t seq) {
  std::uint64_t end = 0;
  while (end < seq) end += batch_size(end + 1);
  return end == seq;
}

std::vector<std::uint64_t> batch_starts_up_to(std::uint64_t seq) {
  std::vector<std::uint64_t> starts;
  for (std::uint64_t at = 1; at <= seq; at += batch_size(at)) starts.push_back(at);
  return starts;
}

void check_kept(const std::unique_ptr<DurableLog>& log, const Acknowledged& acknowledged) {
  const Head head = log->last();
  CHECK(head.epoch >= acknowledged.epoch);
  CHECK(head.seq >= acknowledged.seq);
  CHECK(ends_a_batch(head.seq));
  CHECK(log->first_seq() >= acknowledged.cut_before);
  const auto report = verify_chain(*log, {});
  REQUIRE_MESSAGE(report.has_value(), (report ? std::string() : report.error().message));
  const auto read = log->read(log->first_seq(), [&](const Record& record) {
    CHECK(record == record_at(record.epoch, record.seq));
    return true;
  });
  CHECK(read);
  CHECK(jobs_of(*log, {.limit = 10'000}) == batch_starts_up_to(head.seq));
  const auto checkpoint = log->load_checkpoint();
  REQUIRE_MESSAGE(checkpoint.has_value(), (checkpoint ? std::string() : checkpoint.error().message));
  CHECK((*checkpoint ? (*checkpoint)->seq : 0) >= acknowledged.checkpoint);
  if (*checkpoint) CHECK((*checkpoint)->bytes == fmt::format("state at {}", (*checkpoint)->seq));
  CHECK(log->check_pages());
}

OpenFaulty sqlite_with(const std::filesystem::path& directory, const DiskFault& fault) {
  return [&directory, &fault]() -> std::unique_ptr<DurableLog> {
    auto log = SqliteLog::open(directory, {.fault = fault, .wal_pages = 12});
    return log ? std::move(*log) : nullptr;
  };
}

// One child on an empty directory, then one on what it left behind.
bool sweep_once(const DiskFault& fault) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.path();
  const Acknowledged first = run_child(sqlite_with(path, fault), 12);
  check_kept(opened(path), first);
  const Acknowledged second = run_child(sqlite_with(path, fault), 5);
  check_kept(opened(path), second);
  return first.finished && second.finished;
}

void sweep(DiskOperation operation, DiskAction action) {
  DiskFault fault{operation, 1, action};
  int faults = 0;
  for (; faults < 1000; ++faults, ++fault.nth) {
    CAPTURE(fault.nth);
    if (sweep_once(fault)) break;
  }
  MESSAGE(faults, " points");
  CHECK(faults > 10);
  CHECK(faults < 1000);
}

TEST_CASE("failed at each sync") { sweep(DiskOperation::kFsync, DiskAction::kEio); }
TEST_CASE("killed at each sync") { sweep(DiskOperation::kFsync, DiskAction::kKill); }
TEST_CASE("power cut at each sync") { sweep(DiskOperation::kFsync, DiskAction::kPower); }
TEST_CASE("power cut at each sync, unsynced sectors torn") { sweep(DiskOperation::kFsync, DiskAction::kTorn); }
TEST_CASE("failed at each write") { sweep(DiskOperation::kWrite, DiskAction::kEio); }
TEST_CASE("disk full at each write") { sweep(DiskOperation::kWrite, DiskAction::kFull); }
TEST_CASE("short at each write") { sweep(DiskOperation::kWrite, DiskAction::kShort); }
TEST_CASE("killed in each write") { sweep(DiskOperation::kWrite, DiskAction::kKill); }
TEST_CASE("power cut in each write") { sweep(DiskOperation::kWrite, DiskAction::kPower); }
TEST_CASE("power cut in each write, unsynced sectors torn") { sweep(DiskOperation::kWrite, DiskAction::kTorn); }

// What happens at the n-th statement that a server of berth sends to PostgreSQL.
enum class PostgresCrash { kKilledBefore, kKilledAfter, kCutBefore, kCutAfter, kDatabaseEnds };

PostgresFault crash_at(int nth, PostgresCrash crash, pid_t database) {
  return [nth, crash, database, count = std::make_shared<int>(0)](bool sent, int socket) {
    if (!sent) ++*count;
    if (*count != nth) return;
    met_its_fault = true;
    if (!sent && crash == PostgresCrash::kKilledBefore) ::raise(SIGKILL);
    if (sent && crash == PostgresCrash::kKilledAfter) ::raise(SIGKILL);
    if (!sent && crash == PostgresCrash::kCutBefore) ::shutdown(socket, SHUT_RDWR);
    if (sent && crash == PostgresCrash::kCutAfter) ::shutdown(socket, SHUT_RDWR);
    if (sent && crash == PostgresCrash::kDatabaseEnds) ::kill(database, SIGQUIT);  // at once, and no order
  };
}

bool sweep_postgres_once(PostgresProcess& process, int nth, PostgresCrash crash) {
  const PostgresPlace place(process);
  bool finished = true;
  for (const int batches : {5, 2}) {
    const pid_t database = process.pid();
    const Acknowledged acknowledged = run_child(
        [&]() -> std::unique_ptr<DurableLog> {
          PostgresOptions options = place.options();
          options.fault = crash_at(nth, crash, database);
          auto log = PostgresLog::open(process.socket(), options);
          return log ? std::move(*log) : nullptr;
        },
        batches, false);
    if (crash == PostgresCrash::kDatabaseEnds && !acknowledged.finished) process.tell("start");
    check_kept(place.open(), acknowledged);
    finished = finished && acknowledged.finished;
  }
  return finished;
}

void sweep_postgres(PostgresCrash crash, int step) {
  PostgresProcess* const process = PostgresProcess::get();
  if (process == nullptr) return;
  int points = 0;
  int nth = 1;
  for (; nth < 1000; nth += step, ++points) {
    CAPTURE(nth);
    if (sweep_postgres_once(*process, nth, crash)) break;
  }
  MESSAGE(points, " points");
  CHECK(nth > 20);
  CHECK(nth < 1000);
}

TEST_CASE("PostgreSQL: killed before every third statement") { sweep_postgres(PostgresCrash::kKilledBefore, 3); }
TEST_CASE("PostgreSQL: killed after each statement was sent") { sweep_postgres(PostgresCrash::kKilledAfter, 1); }
TEST_CASE("PostgreSQL: cut off before every third statement") { sweep_postgres(PostgresCrash::kCutBefore, 3); }
TEST_CASE("PostgreSQL: cut off after each statement was sent") { sweep_postgres(PostgresCrash::kCutAfter, 1); }
TEST_CASE("PostgreSQL: it crashes at every seventh statement") { sweep_postgres(PostgresCrash::kDatabaseEnds, 7); }

TEST_CASE("a failure is told with its file and cause, and a full disk is called full") {
  for (const auto& [fault, cause] :
       {std::pair{"fsync:5:eio", "input/output error"}, std::pair{"write:12:full", "no space left"}}) {
    const TemporaryDirectory directory;
    auto log = SqliteLog::open(directory.path(), {.fault = parse_disk_fault(fault).value()});
    Result<void> failed;
    while (log && failed) {
      const auto epoch = (*log)->take_epoch();
      if (!epoch) failed = epoch.error();
    }
    const Error error = log ? failed.error() : log.error();
    CAPTURE(error.message);
    CHECK(error.code == ErrorCode::kIo);
    CHECK(error.message.find(cause) != std::string::npos);
    CHECK(error.message.find(directory.path().string()) != std::string::npos);
    CHECK(error.message.find("end the process") != std::string::npos);
  }
}

}  // namespace
}  // namespace berth::store

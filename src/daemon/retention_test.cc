#include "daemon/retention.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "backend/local/local_backend.h"
#include "store/memory_log.h"

namespace berth::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDayMs = 86'400'000;

// A data directory with files of jobs, and a log that knows which jobs have finished.
class Site {
 public:
  Site() : directory_((fs::temp_directory_path() / "berth-retention-XXXXXX").string()) {
    REQUIRE(::mkdtemp(directory_.data()) != nullptr);
    epoch_ = *log_.take_epoch();
  }
  ~Site() { fs::remove_all(directory_); }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  void runs(std::uint64_t job, std::size_t bytes = 10) {
    fs::create_directories(backend::checkpoint_dir(directory_, job));
    std::ofstream(backend::checkpoint_dir(directory_, job) + "/weights") << std::string(bytes, 'w');
  }
  void finished(std::uint64_t job, std::int64_t at_ms, std::size_t bytes = 10) {
    runs(job, bytes);
    const store::Record record{log_.last().seq + 1, epoch_, {at_ms}, 1, 1, "over"};
    const store::HistoryRow row{job, {at_ms}, "row", 0};
    REQUIRE(log_.append(epoch_, record.seq, {&record, 1}, {&row, 1}));
  }
  bool has(std::uint64_t job) const { return fs::exists(backend::job_dir(directory_, job)); }
  std::size_t sweep(const KeepFinished& keep, std::int64_t now_ms) {
    return Leavings(directory_, log_, keep).sweep({now_ms});
  }
  const std::string& directory() const { return directory_; }
  const store::Log& log() const { return log_; }

 private:
  std::string directory_;
  store::MemoryLog log_;
  std::uint64_t epoch_ = 0;
};

TEST_CASE("what a finished job left goes when its time is over and not before") {
  Site site;
  site.finished(1, 0);
  site.finished(2, kDayMs);
  CHECK(site.sweep({.seconds = 7 * 86'400, .bytes = {}}, 7 * kDayMs - 1) == 0);
  CHECK(site.has(1));
  CHECK(site.sweep({.seconds = 7 * 86'400, .bytes = {}}, 7 * kDayMs) == 1);
  CHECK_FALSE(site.has(1));
  CHECK(site.has(2));
}

TEST_CASE("a job that is live, and may resume from its checkpoint, keeps its directory for ever") {
  Site site;
  site.runs(1);
  site.finished(2, 0);
  CHECK(site.sweep({.seconds = 0, .bytes = 0}, 1000 * kDayMs) == 1);
  CHECK(fs::exists(backend::checkpoint_dir(site.directory(), 1) + "/weights"));
  CHECK_FALSE(site.has(2));
}

TEST_CASE("over the size, what finished first goes first and what live jobs hold does not count") {
  Site site;
  site.runs(1, 50'000'000);
  site.finished(4, 1000, 1'000'000);
  site.finished(3, 2000, 1'000'000);
  site.finished(2, 3000, 1'000'000);
  CHECK(site.sweep({.seconds = {}, .bytes = 2'500'000}, kDayMs) == 1);
  CHECK_FALSE(site.has(4));
  CHECK(site.has(3));
  CHECK(site.has(2));
  CHECK(site.has(1));
}

TEST_CASE("a job that finishes between two sweeps is found by the second") {
  Site site;
  site.runs(1);
  Leavings leavings(site.directory(), site.log(), {.seconds = 0, .bytes = {}});
  CHECK(leavings.sweep({0}) == 0);
  site.finished(1, 1000);
  CHECK(leavings.sweep({1000}) == 1);
  CHECK_FALSE(site.has(1));
}

TEST_CASE("what a symbolic link of a job names stays") {
  Site site;
  site.runs(1);
  site.finished(2, 0);
  fs::create_directory_symlink(backend::job_dir(site.directory(), 1), backend::job_dir(site.directory(), 2) + "/other");
  CHECK(site.sweep({.seconds = 0, .bytes = {}}, 1) == 1);
  CHECK(fs::exists(backend::checkpoint_dir(site.directory(), 1) + "/weights"));
}

TEST_CASE("other names in the directory of jobs are left alone") {
  Site site;
  site.finished(7, 0);
  for (const char* name : {"7x", "-7", "007.bak", "4711"})
    fs::create_directories(backend::jobs_dir(site.directory()) + "/" + name);
  CHECK(site.sweep({.seconds = 0, .bytes = {}}, 1) == 1);
  for (const char* name : {"7x", "-7", "007.bak", "4711"})
    CHECK(fs::exists(backend::jobs_dir(site.directory()) + "/" + name));
}

TEST_CASE("how long output is kept is said in words") {
  CHECK(words_of({}) == "7d after a job's end");
  CHECK(words_of({.seconds = 3600, .bytes = std::int64_t{64} << 30U}) == "1h after a job's end, 64GiB in all");
  CHECK(words_of({.seconds = {}, .bytes = {}}).empty());
}

}  // namespace
}  // namespace berth::daemon

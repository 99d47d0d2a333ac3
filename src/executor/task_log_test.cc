#include "executor/task_log.h"

#include <sys/resource.h>

#include <csignal>

#include "executor/executor_fixture.h"
#include "executor/log_segment.h"
#include "executor/task_log_writer.h"

namespace berth::executor {

namespace {

std::string read_all(const std::string& directory) {
  const auto read = read_task_log(directory, LogStream::kStdout, 0, 1 << 30);
  REQUIRE(read.has_value());
  return read->bytes;
}

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture, "a log reads back in pieces of any size") {
  TaskLogWriter writer(path(""), LogStream::kStdout, 1'000, 4, 1);
  std::string written;
  for (int line = 0; line < 60; ++line) {
    const std::string text = "line " + std::to_string(line) + "\n";
    writer.write(0, text);
    written += text;
  }
  CHECK(list_log_segments(path(""), LogStream::kStdout).size() > 1);
  std::string read_back;
  for (std::int64_t from = 0;;) {
    const auto read = read_task_log(path(""), LogStream::kStdout, from, 7);
    REQUIRE(read.has_value());
    CHECK(read->from == from);
    if (read->bytes.empty()) break;
    read_back += read->bytes;
    from = read->next;
  }
  CHECK(read_back == written);
  const auto tail = read_task_log(path(""), LogStream::kStdout, -5, 100);
  REQUIRE(tail.has_value());
  CHECK(tail->bytes == "e 59\n");
}

TEST_CASE_FIXTURE(ExecutorFixture, "a log over its limit drops its beginning, says so, and keeps its offsets") {
  TaskLogWriter writer(path(""), LogStream::kStdout, 1'000, 4, 1);
  for (int line = 0; line < 1'000; ++line) writer.write(0, "line " + std::to_string(line) + "\n");
  const auto segments = list_log_segments(path(""), LogStream::kStdout);
  std::int64_t size = 0;
  for (const auto& segment : segments) size += segment.size;
  CHECK(size <= 1'000 + 250);
  const auto read = read_task_log(path(""), LogStream::kStdout, 0, 1 << 20);
  REQUIRE(read.has_value());
  CHECK(read->from == segments.front().offset);
  CHECK(read->from > 0);
  CHECK(read->next - read->from == static_cast<std::int64_t>(read->bytes.size()));
  CHECK(read->bytes.find("berth: over the limit of 1000 bytes; what came before byte ") != std::string::npos);
  CHECK(read->bytes.ends_with("line 999\n"));
}

TEST_CASE_FIXTURE(ExecutorFixture, "a log is gone on with by the next writer") {
  { TaskLogWriter(path(""), LogStream::kStdout, 1'000, 4, 1).write(0, "first\n"); }
  TaskLogWriter(path(""), LogStream::kStdout, 1'000, 4, 1).write(0, "second\n");
  CHECK(read_all(path("")) == "first\nsecond\n");
}

TEST_CASE_FIXTURE(ExecutorFixture, "lines of several ranks are not mixed, and unfinished ones not lost") {
  TaskLogWriter writer(path(""), LogStream::kStdout, 1 << 20, 4, 2);
  writer.write(0, "a");
  writer.write(1, "b\nc");
  writer.write(0, "a\n");
  writer.write(1, std::string(100'000, 'x'));
  writer.finish();
  const std::string log = read_all(path(""));
  CHECK(log.starts_with("[1] b\n[0] aa\n[1] cxxx"));
  CHECK(log.ends_with("x\n"));
  CHECK(log.size() > 100'000);
}

TEST_CASE_FIXTURE(ExecutorFixture, "output that the disk refuses is let go, and told of when there is room again") {
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &usual) == 0);
  ::signal(SIGXFSZ, SIG_IGN);
  TaskLogWriter writer(path(""), LogStream::kStdout, 1'000, 4, 1);
  const rlimit full{10, usual.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  writer.write(0, "0123456789abcdef");
  writer.write(0, "more");
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &usual) == 0);
  writer.write(0, "kept\n");
  ::signal(SIGXFSZ, SIG_DFL);
  CHECK(read_all(path("")) == "0123456789\nberth: 10 bytes of output could not be written here\nkept\n");
}

TEST_CASE_FIXTURE(ExecutorFixture, "a missing log is empty") { CHECK(read_all(path("nowhere")).empty()); }

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a task that prints more than its limit is neither stopped nor allowed to fill the disk") {
  auto& executor = open();
  auto task = shell(1, "yes 0123456789 | head -c 20000000; echo; echo last");
  task.max_log_bytes = 100'000;
  REQUIRE(executor.start(task).has_value());
  CHECK(wait_for_exit(task.key).code == 0);
  std::uintmax_t size = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("logs/1"))) size += entry.file_size();
  CHECK(size <= 130'000);
  const auto read = read_task_log(path("logs/1"), LogStream::kStdout, -5, 100);
  REQUIRE(read.has_value());
  CHECK(read->bytes == "last\n");
  CHECK(read->next > 20'000'000);
}

}  // namespace berth::executor

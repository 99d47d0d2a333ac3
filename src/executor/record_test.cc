#include "executor/record.h"

#include "executor/executor_fixture.h"
#include "executor/state_file.h"

namespace berth::executor {

TEST_CASE("a task key reads back, and nothing else does") {
  const TaskKey key{18446744073709551615ULL, 4294967295U, 0, 7};
  CHECK(parse_task_key(to_string(key)) == key);
  for (const char* bad :
       {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.", "a.b.c.d", "-1.0.0.0", "1.2.3.4294967296", "new-1.1.0.0"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_task_key(bad).has_value());
  }
}

TEST_CASE_FIXTURE(ExecutorFixture, "a launch record keeps every field, and bytes that are no UTF-8") {
  LaunchRecord record;
  record.launch = shell(7, "printf '\xff\xfe \"quoted\" \n'");
  record.launch.env.emplace_back("EMPTY", "");
  record.launch.rank_env = {{{"RANK", "0"}}, {}};
  record.launch.user = TaskUser{1, 2, "ann", "/home/ann", "/bin/sh", true};
  record.launch.memory_limit_mib = 3;
  record.launch.cpu_milli = 4;
  record.launch.time_limit_ms = 5;
  record.launch.grace_ms = 6;
  record.launch.stop_signal = 7;
  record.launch.max_log_bytes = 8;
  record.launch.log_segments = 9;
  record.launch.checkpoint_dir = "/c";
  record.launch.lease_ms = 10;
  record.token = "t";
  record.places = {"/m", "/c", "/p", "/t"};
  REQUIRE(replace_state_file(path("launch.json"), encode(record)).has_value());
  const auto read = read_launch(path(""));
  REQUIRE(read.has_value());
  CHECK(encode(*read) == encode(record));
  CHECK(read->launch.argv == record.launch.argv);
  CHECK(read->launch.rank_env == record.launch.rank_env);
  CHECK(read->launch.user->gid == 2);
}

TEST_CASE_FIXTURE(ExecutorFixture, "an exit record keeps every field and every reason") {
  using enum ExitReason;
  for (const auto reason :
       {kExited, kSignalled, kTimeLimit, kOutOfMemory, kKilled, kStartFailed, kSupervisorLost, kLeaseExpired}) {
    const Exited exited{{1, 2, 3, 4}, Timestamp{5}, reason, 6, 7, 8, 9, 10, 11, 12, "m"};
    REQUIRE(replace_state_file(path("exit.json"), encode(exited)).has_value());
    const auto read = read_exit(path(""), exited.key);
    REQUIRE(read.has_value());
    CHECK(read->reason == reason);
    CHECK(encode(*read) == encode(exited));
  }
}

TEST_CASE_FIXTURE(ExecutorFixture, "a damaged record is corrupt, a missing one not found") {
  CHECK(read_started(path("")).error().code == ErrorCode::kNotFound);
  for (const char* bad : {"", "{}", "[]", "{\"time\": \"x\", \"ranks\": []}", "{\"time\": 1"}) {
    std::ofstream(path("started.json")) << bad;
    CAPTURE(bad);
    CHECK(read_started(path("")).error().code == ErrorCode::kCorrupt);
  }
}

}  // namespace berth::executor

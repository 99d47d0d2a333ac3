// Limits that the kernel enforces: memory and CPU by cgroup. The test prints SKIPPED where the kernel does not allow
// them.

#include <csignal>

#include "executor/executor_fixture.h"
#include "executor/record.h"
#include "model/exit_code.h"

namespace berth::executor {

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a task over its memory limit is killed by the kernel and reported as out of memory") {
  auto& executor = open();
  if (!executor.capabilities().memory_limit) {
    MESSAGE("skipped: " << executor.capabilities().warnings.front());
    return;
  }
  auto task = shell(1, "exec tail /dev/zero");  // tail keeps a line that never ends
  task.memory_limit_mib = 32;
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kOutOfMemory);
  CHECK(exited.signal == SIGKILL);
  CHECK(exited.peak_rss_mib <= 40);
  CHECK(exited.message.find("memory limit of 32 MiB") != std::string::npos);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a child killed for memory explains the failure of its parent") {
  auto& executor = open();
  if (!executor.capabilities().memory_limit) {
    MESSAGE("skipped: " << executor.capabilities().warnings.front());
    return;
  }
  auto task = shell(1, "tail /dev/zero; exit 1");
  task.memory_limit_mib = 32;
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kOutOfMemory);
  CHECK(exited.code == 1);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task under its limits ends as it would, and its groups are gone") {
  auto& executor = open();
  auto task = shell(1, "cat /proc/self/cgroup; sleep 0.2; exit 0");
  task.memory_limit_mib = 256;
  task.cpu_milli = 500;
  REQUIRE(executor.start(task).has_value());
  wait_for_start(task.key);
  const auto supervisor = read_supervisor(path("run/tasks/" + to_string(task.key)));
  REQUIRE(supervisor.has_value());
  CHECK(wait_for_exit(task.key).reason == ExitReason::kExited);
  // Where no limit can be set there may still be a group that only keeps track.
  const bool any = executor.capabilities().memory_limit || executor.capabilities().cpu_limit;
  if (any) CHECK(read_log(1, LogStream::kStdout).find("/" + to_string(task.key)) != std::string::npos);
  for (const auto& directory : supervisor->cgroups.directories) CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE_FIXTURE(ExecutorFixture, "a CPU limit holds a busy task to its share") {
  auto& executor = open();
  if (!executor.capabilities().cpu_limit) {
    MESSAGE("skipped: " << executor.capabilities().warnings.front());
    return;
  }
  auto task = shell(1, "while :; do :; done");
  task.cpu_milli = 200;
  task.time_limit_ms = 2'000;
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  // A fifth of the time it ran, and a period more for where the clocks are read.
  CHECK(exited.cpu_ms <= exited.ran_ms / 5 + 200);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task cannot have more processes than its limit") {
  auto& executor = open();
  if (!executor.capabilities().pids_limit) {
    MESSAGE("skipped: " << executor.capabilities().warnings.front());
    return;
  }
  auto task = launch(1, {"perl", "-e",
                         "my $n = 0; for (1 .. 60) { my $pid = fork; last if !defined $pid; "
                         "if (!$pid) { sleep 3003; exit } $n++ } print $n;"});
  task.pids_limit = 20;
  REQUIRE(executor.start(task).has_value());
  CHECK(wait_for_exit(task.key).reason == ExitReason::kExited);
  CHECK(read_log(1, LogStream::kStdout) == "19");
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a start that fails for want of process ids is told apart from the job's own failure") {
  open();
  close();
  const std::string group = "/sys/fs/cgroup/pids/berth-executor-test-" + std::to_string(::getpid());
  std::error_code refused;
  if (!std::filesystem::create_directory(group, refused)) {
    MESSAGE("skipped: no groups of the pids controller of version 1 can be made here");
    return;
  }
  // The supervisor alone fills the group, so that no rank can be forked. With room for one rank the second might fit
  // all the same: the first leaves this group for the one of its task.
  std::ofstream(group + "/pids.max") << 1;
  supervised_by = {"/bin/sh", "-c", "echo $$ > " + group + "/cgroup.procs; exec " BERTH_SUPERVISE " $0"};
  auto& executor = open();
  const auto task = shell(1, "sleep 3004");
  REQUIRE(executor.start(task).has_value());
  const Exited& exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kStartFailed);
  CHECK(exited.code == kNodeShortCode);
  CHECK(exited.message.find("Resource temporarily unavailable") != std::string::npos);
  REQUIRE(wait_until_quiet());
  std::filesystem::remove(group, refused);
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "an escape from environment and session is caught by the cgroup when the supervisor is lost") {
  auto& executor = open();
  if (!executor.capabilities().memory_limit) {
    MESSAGE("skipped: " << executor.capabilities().warnings.front());
    return;
  }
  const auto task = shell(1, "(env -i setsid sh -c 'echo $$ > escaped; exec sleep 3001' &); sleep 3002");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("escaped");
  const pid_t escaped = std::stoi(read_file("escaped"));
  const auto rank = see_process(wait_for_start(task.key).pids[0]);
  REQUIRE(rank.has_value());
  ::kill(rank->parent, SIGKILL);
  CHECK(wait_for_exit(task.key).reason == ExitReason::kSupervisorLost);
  const auto now = see_process(escaped);
  CHECK((!now || now->state == 'Z'));
}

}  // namespace berth::executor

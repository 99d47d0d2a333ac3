// What a task can do to its own supervisor and run directory where it runs as the server's own user, and that it gains
// nothing by it: an exit is the news that no process of the task is left.

#include <fcntl.h>
#include <sys/file.h>

#include <csignal>

#include "executor/descriptor.h"
#include "executor/executor_fixture.h"

namespace berth::executor {

namespace {

const std::string kForged = R"({"reason":"exited","code":0,"signal":0,"rank":0,"time":1})";

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture, "an exit that a running task writes itself is not believed") {
  auto& executor = open();
  const auto task = shell(1,
                          "cp forged run/tasks/1.1.0.0/exit.json; echo up > up; while [ ! -e go ]; do sleep 0.05; "
                          "done; exit 7");
  std::ofstream(path("forged")) << kForged;
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  const std::int64_t begin = boot_clock_ms();
  CHECK(wait_until([&] { return boot_clock_ms() - begin > 1'000; }));
  CHECK(exits.empty());
  CHECK_FALSE(executor.forget(task.key).has_value());
  std::ofstream(path("go")) << "go";
  CHECK(wait_for_exit(task.key).code == 7);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task that forges its exit and kills its supervisor is over when it is dead") {
  cgroups = false;
  auto& executor = open();
  const auto task = shell(1,
                          "setsid sleep 2101 & cp forged run/tasks/1.1.0.0/exit.json; echo up > up; "
                          "kill -KILL $PPID; sleep 2102");
  std::ofstream(path("forged")) << kForged;
  REQUIRE(executor.start(task).has_value());
  wait_for_exit(task.key);
  CHECK(nothing_is_left());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a stop reaches a task that has forged its exit") {
  auto& executor = open();
  const auto task = shell(1,
                          "trap 'exit 5' TERM; cp forged run/tasks/1.1.0.0/exit.json; echo up > up; "
                          "while :; do sleep 0.05; done");
  std::ofstream(path("forged")) << kForged;
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 5'000).has_value());
  CHECK(wait_for_exit(task.key).code == 5);
}

TEST_CASE_FIXTURE(ExecutorFixture, "directories in the places of its records do not keep a task from ending") {
  auto& executor = open();
  const auto task = shell(1,
                          "cd run/tasks/1.1.0.0; rm -r commands; touch commands; mkdir -p exit.json/a exit.json.new/b; "
                          "cd ../../..; echo up > up; sleep 2103");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 0).has_value());
  CHECK(wait_for_exit(task.key).reason == ExitReason::kKilled);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task that removes its run directory is ended, and that is reported") {
  auto& executor = open();
  const auto task = shell(1, "rm -rf run/tasks/1.1.0.0; sleep 2104");
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kKilled);
  CHECK(exited.message.find("run directory was removed") != std::string::npos);
  CHECK(nothing_is_left());
  open();  // it stays known
  CHECK(wait_for_exit(task.key).reason == ExitReason::kKilled);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task that removes its run directory and kills its supervisor is reported") {
  cgroups = false;
  auto& executor = open();
  const auto task =
      shell(1, "setsid sleep 2105 & kill -STOP $PPID; rm -rf run/tasks/1.1.0.0; kill -KILL $PPID; sleep 2106");
  REQUIRE(executor.start(task).has_value());
  CHECK(wait_for_exit(task.key).reason == ExitReason::kSupervisorLost);
  CHECK(nothing_is_left());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task that removes its run directory and stops its supervisor obeys a stop") {
  obey_ms = 500;
  auto& executor = open();
  const auto task = shell(1, "kill -STOP $PPID; rm -rf run/tasks/1.1.0.0; echo up > up; sleep 2107");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  (void)executor.kill(task.key, 0).has_value();
  CHECK(wait_for_exit(task.key).reason == ExitReason::kKilled);
  CHECK(nothing_is_left());
}

// Each link of the chain forks the next and exits, so that a look at /proc rarely sees one. Without cgroups only the
// supervisor, as subreaper, can get hold of it. All links share a lock, which is free exactly when all are gone.
TEST_CASE_FIXTURE(ExecutorFixture, "a chain of processes that fork and exit does not outlive a stop") {
  cgroups = false;
  auto& executor = open();
  for (std::uint64_t job = 1; job <= 5; ++job) {
    const std::string up = "up" + std::to_string(job);
    const auto task = launch(job, {"perl", "-e",
                                   "$SIG{TERM} = 'IGNORE'; open(my $up, '>', '" + up +
                                       "'); flock($up, 2); if (!fork) { while (1) { exit 0 if fork; } } "
                                       "syswrite($up, 'up'); sleep 2108;"});
    REQUIRE(executor.start(task).has_value());
    wait_for_file(up);
    const Descriptor lock(::open(path(up).c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) != 0);
    REQUIRE(executor.kill(task.key, 0).has_value());
    wait_for_exit(task.key);
    CHECK(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
  }
}

}  // namespace berth::executor

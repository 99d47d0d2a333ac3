// Signals to a launcher that starts its workers itself, as torchrun does: they are for the workers.

#include <csignal>

#include "executor/executor_fixture.h"

namespace berth::executor {

namespace {

// A launcher that dies of SIGUSR1, and whose worker, in a session of its own, saves at that signal. It is not done when
// the worker is: like torchrun it then waits for others, until it is told to end.
const std::string kLauncher =
    "while [ ! -e go ]; do sleep 0.05; done; "
    "LOCAL_RANK=0 setsid sh -c 'trap \"echo saved > saved; exit 0\" USR1; echo up > up; while :; do sleep 0.05; done' "
    "& "
    "while :; do sleep 0.05; done";

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a signal reaches the workers of a launcher in sessions of their own, and not itself") {
  auto& executor = open();
  auto task = shell(1, kLauncher);
  task.signal_workers = true;
  std::ofstream(path("go")) << "go";
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.signal(task.key, SIGUSR1).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(read_file("saved") == "saved\n");
  CHECK(exited.reason == ExitReason::kSignalled);
  CHECK(exited.signal == SIGUSR1);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a signal for workers that are not started yet waits for them") {
  auto& executor = open();
  auto task =
      shell(1, "while [ ! -e go ]; do sleep 0.05; done; " +
                   std::string("LOCAL_RANK=0 exec perl -e '$SIG{USR1} = sub { exit 3 }; sleep 3005' & wait $!"));
  task.signal_workers = true;
  REQUIRE(executor.start(task).has_value());
  wait_for_start(task.key);
  REQUIRE(executor.signal(task.key, SIGUSR1).has_value());
  const std::int64_t begin = boot_clock_ms();
  CHECK(wait_until([&] { return boot_clock_ms() - begin > 1'500; }));
  CHECK(exits.empty());
  std::ofstream(path("go")) << "go";
  wait_for_exit(task.key);
}

TEST_CASE_FIXTURE(ExecutorFixture, "the stop signal of a launcher saves, too, and its end stays within the grace") {
  auto& executor = open();
  auto task = shell(1, kLauncher);
  task.signal_workers = true;
  task.stop_signal = SIGUSR1;
  std::ofstream(path("go")) << "go";
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 30'000).has_value());
  CHECK(wait_for_exit(task.key).reason == ExitReason::kKilled);
  CHECK(read_file("saved") == "saved\n");
}

}  // namespace berth::executor

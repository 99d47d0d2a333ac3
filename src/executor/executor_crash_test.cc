// What happens to tasks when the control plane or a supervisor dies. The "server" here is a child process with an
// Executor in it, which is killed with SIGKILL.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>

#include "executor/executor_fixture.h"

namespace berth::executor {

using namespace std::string_literals;

namespace {

// Runs `serve` in a child process that ends by SIGKILL: at the end of `serve`, or after `kill_after_us`.
void run_killed_server(const ExecutorOptions& options, const std::function<void(Executor&)>& serve,
                       std::int64_t kill_after_us = -1) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto executor = Executor::open(options);
    if (executor) serve(**executor);
    ::kill(::getpid(), SIGKILL);
  }
  if (kill_after_us >= 0) {
    ::usleep(static_cast<useconds_t>(kill_after_us));
    ::kill(child, SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

// Returns how many live processes have this command line, its words ended by NUL.
int count_commands(const std::string& words) {
  int count = 0;
  for (const auto& process : see_all_processes()) {
    std::ifstream file("/proc/" + std::to_string(process.pid) + "/cmdline");
    const std::string line(std::istreambuf_iterator<char>(file), {});
    if (process.state != 'Z' && line.find(words) != std::string::npos) ++count;
  }
  return count;
}

pid_t supervisor_of(const Started& started) {
  const auto rank = see_process(started.pids.at(0));
  return rank ? rank->parent : 0;
}

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture, "a task outlives a killed server and is adopted") {
  const auto task = shell(1, "echo up > up; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 9");
  run_killed_server(options(), [&](Executor& executor) {
    (void)executor.start(task).has_value();
    while (read_file("up").empty()) ::usleep(1000);
  });
  auto& executor = open();
  CHECK(executor.known() == std::vector<TaskKey>{task.key});
  const pid_t pid = wait_for_start(task.key).pids[0];
  CHECK(see_process(pid).has_value());
  CHECK(exits.empty());
  REQUIRE(executor.start(task).has_value());
  std::ofstream(path("go")) << "go";
  CHECK(wait_for_exit(task.key).code == 9);
  CHECK(read_log(1, LogStream::kStdout) == "done\n");
}

TEST_CASE_FIXTURE(ExecutorFixture, "an exit that came while there was no server is known afterwards") {
  const auto task = shell(1, "echo ran >> witness; while [ ! -e go ]; do sleep 0.05; done; exit 11");
  run_killed_server(options(), [&](Executor& executor) {
    (void)executor.start(task).has_value();
    while (read_file("witness").empty()) ::usleep(1000);
  });
  std::ofstream(path("go")) << "go";
  REQUIRE(wait_until_quiet());
  auto& executor = open();
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kExited);
  CHECK(exited.code == 11);
  CHECK(started.contains(task.key));
  CHECK(read_file("witness") == "ran\n");
}

TEST_CASE_FIXTURE(ExecutorFixture, "the time limit holds without a server") {
  auto task = shell(1, "trap '' TERM; while :; do sleep 0.05; done");
  task.time_limit_ms = 300;
  task.grace_ms = 100;
  run_killed_server(options(), [&](Executor& executor) { (void)executor.start(task).has_value(); });
  REQUIRE(wait_until_quiet());
  open();
  CHECK(wait_for_exit(task.key).reason == ExitReason::kTimeLimit);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a server killed at any moment of its starts loses nothing and runs nothing twice") {
  std::mt19937 random(20261121);
  constexpr std::uint64_t kRounds = 25;
  constexpr std::uint64_t kTasks = 6;
  const auto make = [&](std::uint64_t job) { return shell(job, "echo " + std::to_string(job) + " >> witness"); };
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const auto start_all = [&](Executor& executor) {
      for (std::uint64_t task = 0; task < kTasks; ++task) {
        (void)executor.start(make(round * kTasks + task + 1)).has_value();
      }
      ::sleep(60);
    };
    run_killed_server(options(), start_all, static_cast<std::int64_t>(random() % 40'000));
  }
  auto& executor = open();
  for (std::uint64_t job = 1; job <= kRounds * kTasks; ++job) REQUIRE(executor.start(make(job)).has_value());
  for (std::uint64_t job = 1; job <= kRounds * kTasks; ++job) CHECK(wait_for_exit({job, 1, 0, 0}).code == 0);
  std::map<std::uint64_t, int> runs;
  std::istringstream witness(read_file("witness"));
  for (std::uint64_t job = 0; witness >> job;) ++runs[job];
  CHECK(runs.size() == kRounds * kTasks);
  for (const auto& run : runs) {
    CAPTURE(run.first);
    CHECK(run.second == 1);
  }
}

TEST_CASE_FIXTURE(ExecutorFixture, "a lock that a dying server's child still holds for a moment is waited for") {
  open();
  close();
  const pid_t child = ::fork();
  if (child == 0) {
    const int lock = ::open(path("run/lock").c_str(), O_RDWR);
    ::flock(lock, LOCK_EX);
    std::ofstream(path("held")) << "held";
    ::usleep(300'000);
    ::_exit(0);
  }
  wait_for_file("held");
  open();
  REQUIRE(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a start cut short before the supervisor is finished, not repeated") {
  auto& executor = open();
  const auto task = shell(1, "echo ran >> witness");
  REQUIRE(executor.start(task).has_value());
  wait_for_exit(task.key);
  close();
  // As if the server had died between the rename of the directory and the exec of the supervisor.
  for (const char* file : {"supervisor.json", "started.json", "exit.json"}) {
    std::filesystem::remove(task_path(task.key, file));
  }
  std::filesystem::remove(path("witness"));
  std::filesystem::create_directory(path("run/tasks/new-2.1.0.0"));
  auto& next = open();
  CHECK(next.known() == std::vector<TaskKey>{task.key});
  CHECK(wait_for_exit(task.key).code == 0);
  CHECK(read_file("witness") == "ran\n");
  CHECK_FALSE(std::filesystem::exists(path("run/tasks/new-2.1.0.0")));
}

TEST_CASE_FIXTURE(ExecutorFixture, "a supervisor that is killed takes its task with it, and that is reported") {
  auto& executor = open();
  const auto task = shell(1,
                          "setsid sh -c 'sleep 2001 & sleep 2002' & "
                          "(setsid sleep 2003 &) ; sleep 0.2; echo up > up; sleep 2004");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  const pid_t supervisor = supervisor_of(wait_for_start(task.key));
  REQUIRE(supervisor > 1);
  ::kill(supervisor, SIGKILL);
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kSupervisorLost);
  CHECK(nothing_is_left());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a supervisor that was killed while there was no server is found out later") {
  const auto task = shell(1, "sleep 2005 & (setsid sleep 2006 &) ; echo up > up; sleep 2007");
  run_killed_server(options(), [&](Executor& executor) {
    (void)executor.start(task).has_value();
    while (read_file("up").empty()) ::usleep(1000);
  });
  for (const pid_t pid : find_processes()) {
    if (!has_environment_entry(pid, "BERTH_TEST_DIRECTORY=" + path("").substr(0, path("").size() - 1))) {
      ::kill(pid, SIGKILL);
    }
  }
  open();
  CHECK(wait_for_exit(task.key).reason == ExitReason::kSupervisorLost);
  CHECK(nothing_is_left());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a supervisor told to end ends its task in good order") {
  auto& executor = open();
  const auto task = shell(1, "trap 'exit 4' TERM; echo up > up; while :; do sleep 0.05; done");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  ::kill(supervisor_of(wait_for_start(task.key)), SIGTERM);
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kKilled);
  CHECK(exited.code == 4);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a supervisor that lies low obeys once it goes on") {
  auto& executor = open();
  const auto task = shell(1, "trap 'exit 6' TERM; echo up > up; while :; do sleep 0.05; done");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  const pid_t supervisor = supervisor_of(wait_for_start(task.key));
  ::kill(supervisor, SIGSTOP);
  REQUIRE(executor.kill(task.key, 50'000).has_value());
  close();
  open();
  CHECK(exits.empty());
  ::kill(supervisor, SIGCONT);
  CHECK(wait_for_exit(task.key).code == 6);
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a supervisor that its task has stopped is killed after a stop, with all of the task") {
  obey_ms = 500;
  auto& executor = open();
  const auto task = shell(1,
                          "trap '' TERM; (env -i setsid sleep 2009 &); kill -STOP $PPID; "
                          "echo up > up; while :; do sleep 0.05; done");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 100).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kKilled);
  CHECK(exited.message.find("did not obey a stop") != std::string::npos);
  CHECK(nothing_is_left());
  CHECK(count_commands("sleep\0002009"s) == 0);
  REQUIRE(executor.warnings().size() == 1);
  CHECK(executor.warnings()[0].find("task 1.1.0.0") != std::string::npos);
}

TEST_CASE_FIXTURE(ExecutorFixture, "the warning of a supervisor that hung ends after a while") {
  obey_ms = 500;
  warn_ms = 0;
  auto& executor = open();
  const auto task = shell(1, "kill -STOP $PPID; echo up > up; while :; do sleep 0.05; done");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 100).has_value());
  CHECK(wait_for_exit(task.key).message.find("did not obey a stop") != std::string::npos);
  CHECK(wait_until([&] { return executor.warnings().empty(); }));
}

TEST_CASE_FIXTURE(ExecutorFixture, "a supervisor that hangs after it took up the stop is killed, too") {
  obey_ms = 500;
  auto& executor = open();
  const auto task = shell(1, "trap 'kill -STOP $PPID' TERM; echo up > up; while :; do sleep 0.05; done");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 500).has_value());
  CHECK(wait_for_exit(task.key).reason == ExitReason::kKilled);
  CHECK(nothing_is_left());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a stop that a hung supervisor did not obey is kept by the next executor") {
  obey_ms = 500;
  auto& executor = open();
  const auto task = shell(1, "trap '' TERM; kill -STOP $PPID; echo up > up; while :; do sleep 0.05; done");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 0).has_value());
  close();
  open();
  CHECK(wait_for_exit(task.key).reason == ExitReason::kKilled);
  CHECK(nothing_is_left());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a lease that is not renewed ends the task, one that is renewed does not") {
  auto& executor = open();
  auto task = shell(1, "sleep 2008");
  task.lease_ms = 1'500;
  REQUIRE(executor.start(task).has_value());
  wait_for_start(task.key);
  const std::int64_t begin = boot_clock_ms();
  CHECK(wait_until([&] {
    REQUIRE(executor.renew_lease().has_value());
    return boot_clock_ms() - begin > 3'000;
  }));
  CHECK(exits.empty());
  close();
  REQUIRE(wait_until_quiet());
  open();
  CHECK(wait_for_exit(task.key).reason == ExitReason::kLeaseExpired);
}

TEST_CASE_FIXTURE(ExecutorFixture, "an exit record that is damaged is no exit code") {
  auto& executor = open();
  const auto task = shell(1, "true");
  REQUIRE(executor.start(task).has_value());
  wait_for_exit(task.key);
  close();
  std::ofstream(task_path(task.key, "exit.json")) << "{\"code\": 0";
  open();
  CHECK(wait_for_exit(task.key).reason == ExitReason::kSupervisorLost);
}

TEST_CASE_FIXTURE(ExecutorFixture, "tasks of this server that it does not know are ended at the start, and no others") {
  server = "directory-one";
  auto& executor = open();
  const auto late = shell(1, "sleep 1000 & sleep 1000");
  REQUIRE(executor.start(late).has_value());
  wait_for_start(late.key);
  close();
  // A server with another data directory on the same machine.
  ExecutorOptions others = options();
  others.run_dir = path("others");
  others.server = "directory-two";
  auto other = Executor::open(others);
  REQUIRE(other.has_value());
  const auto theirs = shell(2, "sleep 1000");
  REQUIRE((*other)->start(theirs).has_value());
  REQUIRE(wait_unseen([&] { return find_task_processes().size() == 5; }));
  other->reset();

  // The same server with its own run directory knows its task.
  open();
  CHECK(executor_warnings().empty());
  CHECK(find_task_processes().size() == 5);
  close();
  // Also where its record cannot be read: then no task can be told from a stranger's.
  const std::string record = task_path(late.key, "launch.json");
  const std::string kept = path("launch.json");
  std::filesystem::rename(record, kept);
  open();
  CHECK(executor_warnings().empty());
  CHECK(find_task_processes().size() == 5);
  close();
  std::filesystem::rename(kept, record);
  // A copy of the data directory, from before the task, does not.
  ExecutorOptions copied = options();
  copied.run_dir = path("copy");
  auto copy = Executor::open(copied);
  REQUIRE(copy.has_value());
  REQUIRE((*copy)->warnings().size() == 1);
  CHECK((*copy)->warnings().front().starts_with("1 task that this data directory does not know"));
  CHECK(find_task_processes().size() == 2);
  copy->reset();

  auto again = Executor::open(others);
  REQUIRE(again.has_value());
  CHECK((*again)->warnings().empty());
  REQUIRE((*again)->kill(theirs.key, 0).has_value());
  REQUIRE(wait_unseen([&] { return find_task_processes().empty(); }));
}

}  // namespace berth::executor

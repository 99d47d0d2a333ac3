// Promise P9 at its smallest: wherever a server or a supervisor is cut down, a task runs at most once, no process is
// left, and its end is known. strace kills the process at the first, second, third ... time that it enters a system
// call, for each call that changes anything, until it gets through unharmed.

#include <sys/wait.h>

#include <csignal>
#include <map>
#include <sstream>

#include "executor/executor_fixture.h"

namespace berth::executor {

namespace {

// The calls that change anything outside the process. To be killed on entry to each is to be killed between any two.
constexpr const char* kChangingCalls[] = {"mkdir",  "mknodat",   "flock",  "write",   "fsync",  "rename",
                                          "unlink", "rmdir",     "clone",  "?clone3", "?vfork", "pipe2",
                                          "wait4",  "signalfd4", "setsid", "prctl",   "kill",   "pidfd_send_signal"};
constexpr int kMostTimes = 60;  // no call is made so often before the last change

bool has_strace() { return std::system("strace -V > /dev/null 2>&1") == 0; }

// The command prefix under which a program is killed when it enters `call` for the `time`th time. What it executes is
// not.
std::vector<std::string> kill_at(const std::string& call, int time) {
  return {"/usr/bin/strace",
          "-f",
          "-b",
          "execve",
          "-o",
          "/dev/null",
          "-e",
          "trace=" + call,
          "-e",
          "inject=" + call + ":signal=KILL:when=" + std::to_string(time)};
}

int run(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  std::vector<std::string> arguments = command;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

std::map<std::uint64_t, int> count_runs(const std::string& witness) {
  std::map<std::uint64_t, int> runs;
  std::istringstream lines(witness);
  for (std::uint64_t job = 0; lines >> job;) ++runs[job];
  return runs;
}

std::string leave_witness(std::uint64_t job) { return "echo " + std::to_string(job) + " >> witness"; }

class SupervisorSweep : public ExecutorFixture {
 public:
  // Runs one task under a supervisor that is killed there, and says how it ended.
  ExitReason run_under(const std::string& call, int time, std::uint64_t job) {
    auto supervisor = kill_at(call, time);
    supervisor.push_back(BERTH_SUPERVISE);
    auto opened = Executor::open({path("run"), supervisor});
    REQUIRE(opened.has_value());
    const auto task = shell(job, "(setsid sleep 4000 &); " + leave_witness(job));
    REQUIRE((*opened)->start(task).has_value());
    std::optional<ExitReason> reason;
    REQUIRE(wait_until([&] {
      for (const auto& seen : (*opened)->observe()) {
        if (const auto* exit = std::get_if<Exited>(&seen)) reason = exit->reason;
      }
      return reason.has_value();
    }));
    CHECK((*opened)->forget(task.key).has_value());
    return *reason;
  }
};

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture, "a server killed at any system call of open and start: the task runs exactly once") {
  if (!has_strace()) {
    MESSAGE("skipped: no strace");
    return;
  }
  std::uint64_t job = 0;
  int kills = 0;
  for (const char* call : kChangingCalls) {
    for (int time = 1; time <= kMostTimes; ++time) {
      auto command = kill_at(call, time);
      ++job;
      const auto task = shell(job, leave_witness(job));
      for (const auto& argument : {std::string(KILL_SWEEP_SERVER), path("run"), std::string(BERTH_SUPERVISE),
                                   std::to_string(job), leave_witness(job), task.log_dir, path("")}) {
        command.push_back(argument);
      }
      const bool killed = run(command) != 0;
      auto& executor = open();
      REQUIRE(executor.start(task).has_value());
      CHECK(wait_for_exit(task.key).code == 0);
      REQUIRE(executor.forget(task.key).has_value());
      close();
      if (!killed) break;
      ++kills;
    }
  }
  open();
  MESSAGE("killed " << kills << " times");
  CHECK(kills > 30);
  const auto runs = count_runs(read_file("witness"));
  CHECK(runs.size() == job);
  for (const auto& run : runs) {
    CAPTURE(run.first);
    CHECK(run.second == 1);
  }
}

TEST_CASE_FIXTURE(SupervisorSweep,
                  "a supervisor killed at any system call: at most one run, nobody left, the end is known") {
  if (!has_strace()) {
    MESSAGE("skipped: no strace");
    return;
  }
  close();
  std::map<std::uint64_t, ExitReason> ends;
  for (const char* call : kChangingCalls) {
    for (int time = 1; time <= kMostTimes; ++time) {
      const std::uint64_t job = ends.size() + 1;
      const ExitReason reason = run_under(call, time, job);
      ends[job] = reason;
      if (reason == ExitReason::kExited) break;
    }
  }
  CHECK(wait_until_quiet());
  const auto runs = count_runs(read_file("witness"));
  std::map<ExitReason, int> reasons;
  for (const auto& end : ends) {
    const auto& [job, reason] = end;
    CAPTURE(end.first);
    ++reasons[reason];
    const int times = runs.contains(job) ? runs.at(job) : 0;
    CHECK(times <= 1);
    if (reason == ExitReason::kExited) CHECK(times == 1);
    if (reason == ExitReason::kStartFailed) CHECK(times == 0);
  }
  for (const auto& [reason, count] : reasons) MESSAGE(std::string(name_of(reason)) << ": " << count);
  CHECK(reasons[ExitReason::kStartFailed] > 5);
  CHECK(reasons[ExitReason::kSupervisorLost] > 20);
}

}  // namespace berth::executor

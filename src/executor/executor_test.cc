#include "executor/executor.h"

#include <fcntl.h>

#include <csignal>
#include <cstdlib>
#include <set>
#include <sstream>

#include "executor/executor_fixture.h"

namespace berth::executor {

TEST_CASE_FIXTURE(ExecutorFixture, "a task starts, ends and is forgotten") {
  auto& executor = open();
  const auto task = shell(1, "echo out; echo err >&2; exit 3");
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kExited);
  CHECK(exited.code == 3);
  CHECK(exited.signal == 0);
  CHECK(exited.message == "exited with code 3");
  CHECK(started.at(task.key).pids.size() == 1);
  CHECK(read_log(1, LogStream::kStdout) == "out\n");
  CHECK(read_log(1, LogStream::kStderr) == "err\n");
  CHECK(executor.known() == std::vector<TaskKey>{task.key});
  REQUIRE(executor.forget(task.key).has_value());
  CHECK(executor.known().empty());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a running task is not forgotten") {
  auto& executor = open();
  const auto task = shell(1, "sleep 1000");
  REQUIRE(executor.start(task).has_value());
  wait_for_start(task.key);
  const auto forgotten = executor.forget(task.key);
  REQUIRE_FALSE(forgotten.has_value());
  CHECK(forgotten.error().code == ErrorCode::kConflict);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a key runs once however often it is started") {
  auto& executor = open();
  const auto task = shell(1, "echo ran >> witness");
  for (int time = 0; time < 5; ++time) REQUIRE(executor.start(task).has_value());
  wait_for_exit(task.key);
  REQUIRE(executor.start(task).has_value());
  open();
  wait_for_exit(task.key);
  CHECK(read_file("witness") == "ran\n");
}

TEST_CASE_FIXTURE(ExecutorFixture, "one look at the processes of the machine serves all tasks that have ended") {
  constexpr std::uint64_t kTasks = 20;
  auto& executor = open();
  for (std::uint64_t job = 1; job <= kTasks; ++job) {
    REQUIRE(executor.start(shell(job, "sleep 1000 & echo left >> witness")).has_value());
  }
  // Nothing is observed before all have ended, as on a machine on which a thousand end at once.
  const auto has_ended = [&](std::uint64_t job) {
    return std::filesystem::exists(task_path({job, 1, 0, 0}, "exit.json"));
  };
  for (std::uint64_t job = 1; job <= kTasks; ++job) REQUIRE(wait_unseen([&] { return has_ended(job); }));
  REQUIRE(wait_unseen([&] { return find_processes().empty(); }));
  CHECK(executor.process_looks() == 0);
  for (std::uint64_t job = 1; job <= kTasks; ++job) wait_for_exit({job, 1, 0, 0});
  CHECK(executor.process_looks() == 1);
  CHECK(executor.knows({kTasks, 1, 0, 0}));
  CHECK_FALSE(executor.knows({kTasks + 1, 1, 0, 0}));
}

TEST_CASE_FIXTURE(ExecutorFixture, "a signal that comes before anything runs is not lost") {
  auto& executor = open();
  const auto task = shell(1, "sleep 1000");
  REQUIRE(executor.start(task).has_value());
  REQUIRE(executor.signal(task.key, SIGTERM).has_value());
  CHECK(wait_for_exit(task.key).signal == SIGTERM);
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a signal reaches the process group, and an unasked one ends the task as signalled") {
  auto& executor = open();
  const auto handled = shell(1, "trap 'echo usr1 > got; exit 7' USR1; echo up > up1; while :; do sleep 0.05; done");
  REQUIRE(executor.start(handled).has_value());
  wait_for_file("up1");
  REQUIRE(executor.signal(handled.key, SIGUSR1).has_value());
  CHECK(wait_for_exit(handled.key).code == 7);
  CHECK(read_file("got") == "usr1\n");

  const auto struck = shell(2, "kill -SEGV $$");
  REQUIRE(executor.start(struck).has_value());
  const auto exited = wait_for_exit(struck.key);
  CHECK(exited.reason == ExitReason::kSignalled);
  CHECK(exited.signal == SIGSEGV);
}

TEST_CASE_FIXTURE(ExecutorFixture, "kill gives grace, then spares nobody") {
  auto& executor = open();
  const auto polite = shell(1, "trap 'echo bye > bye; exit 0' TERM; echo up > up1; while :; do sleep 0.05; done");
  const auto deaf = shell(2, "trap '' TERM; echo up > up2; while :; do sleep 0.05; done");
  REQUIRE(executor.start(polite).has_value());
  REQUIRE(executor.start(deaf).has_value());
  wait_for_file("up1");
  wait_for_file("up2");
  REQUIRE(executor.kill(polite.key, 50'000).has_value());
  REQUIRE(executor.kill(deaf.key, 300).has_value());
  const auto left = wait_for_exit(polite.key);
  CHECK(left.reason == ExitReason::kKilled);
  CHECK(left.code == 0);
  CHECK(left.signal == 0);
  CHECK(read_file("bye") == "bye\n");
  const auto forced = wait_for_exit(deaf.key);
  CHECK(forced.reason == ExitReason::kKilled);
  CHECK(forced.signal == SIGKILL);
  CHECK(forced.ran_ms >= 300);
  const auto again = executor.kill(deaf.key, 0);
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().code == ErrorCode::kNotFound);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a second kill can only shorten the grace") {
  auto& executor = open();
  const auto deaf = shell(1, "trap '' TERM; echo up > up; while :; do sleep 0.05; done");
  REQUIRE(executor.start(deaf).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(deaf.key, 3'600'000).has_value());
  REQUIRE(executor.kill(deaf.key, 100).has_value());
  REQUIRE(executor.kill(deaf.key, 3'600'000).has_value());
  CHECK(wait_for_exit(deaf.key).signal == SIGKILL);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a kill right behind the start is not lost") {
  auto& executor = open();
  const auto task = shell(1, "sleep 1000");
  REQUIRE(executor.start(task).has_value());
  REQUIRE(executor.kill(task.key, 0).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kKilled);
  CHECK(exited.signal != 0);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a stopped process is ended too") {
  auto& executor = open();
  const auto task = shell(1, "trap 'exit 5' TERM; echo up > up; kill -STOP $$; while :; do sleep 0.05; done");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  REQUIRE(executor.kill(task.key, 50'000).has_value());
  CHECK(wait_for_exit(task.key).code == 5);
}

TEST_CASE_FIXTURE(ExecutorFixture, "the time limit signals, then kills") {
  auto& executor = open();
  auto polite = shell(1, "trap 'exit 0' TERM; while :; do sleep 0.05; done");
  polite.time_limit_ms = 400;
  auto deaf = shell(2, "trap '' USR2; while :; do sleep 0.05; done");
  deaf.time_limit_ms = 400;
  deaf.stop_signal = SIGUSR2;
  deaf.grace_ms = 200;
  REQUIRE(executor.start(polite).has_value());
  REQUIRE(executor.start(deaf).has_value());
  const auto left = wait_for_exit(polite.key);
  CHECK(left.reason == ExitReason::kTimeLimit);
  CHECK(left.code == 0);
  CHECK(left.ran_ms >= 400);
  CHECK(left.message == "over its time limit of 400 ms; exited with code 0");
  const auto forced = wait_for_exit(deaf.key);
  CHECK(forced.reason == ExitReason::kTimeLimit);
  CHECK(forced.signal == SIGKILL);
  CHECK(forced.ran_ms >= 600);
}

TEST_CASE_FIXTURE(ExecutorFixture, "what cannot start is an exit that says why") {
  auto& executor = open();
  const auto missing = launch(1, {"/no/such/program"});
  const auto unexecutable = launch(2, {"/etc/passwd"});
  auto nowhere = shell(3, "echo never");
  nowhere.workdir = "/no/such/directory";
  auto unfound = launch(4, {"no-such-program"});
  unfound.env.emplace_back("PATH", path("bin"));
  for (const auto& task : {missing, unexecutable, nowhere, unfound}) {
    REQUIRE(executor.start(task).has_value());
    CHECK(wait_for_exit(task.key).reason == ExitReason::kStartFailed);
    CHECK_FALSE(started.contains(task.key));
  }
  CHECK(exits.at(missing.key).code == 127);
  CHECK(exits.at(missing.key).message == "cannot execute /no/such/program: No such file or directory");
  CHECK(exits.at(unexecutable.key).code == 126);
  CHECK(exits.at(nowhere.key).message ==
        "cannot enter its working directory /no/such/directory: No such file or directory");
  CHECK(exits.at(unfound.key).code == 127);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a launch that can never work is refused at once") {
  auto& executor = open();
  auto empty = launch(1, {});
  auto relative = shell(1, "true");
  relative.log_dir = "logs";
  auto negative = shell(1, "true");
  negative.memory_limit_mib = -1;
  auto variable = shell(1, "true");
  variable.env.emplace_back("A=B", "c");
  auto nul = shell(1, std::string("true\0false", 10));
  for (const auto& task : {empty, relative, negative, variable, nul}) {
    const auto refused = executor.start(task);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kInvalid);
  }
  CHECK(executor.known().empty());
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "the environment holds what the launch names and the allowed few, nothing of the server's") {
  ::setenv("BERTH_SERVER_SECRET", "canary", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "canary", 1);
  auto& executor = open();
  auto task = launch(1, {"env"});
  task.env.emplace_back("GIVEN", "a b\nc");
  task.env.emplace_back("LANG", "xx");
  task.checkpoint_dir = path("checkpoints");
  REQUIRE(executor.start(task).has_value());
  wait_for_exit(task.key);
  ::unsetenv("BERTH_SERVER_SECRET");
  ::unsetenv("AWS_SECRET_ACCESS_KEY");
  const std::set<std::string> expected{"PATH",
                                       "HOME",
                                       "LANG",
                                       "TZ",
                                       "USER",
                                       "GIVEN",
                                       "BERTH_TEST_DIRECTORY",
                                       "BERTH_CHECKPOINT_DIR",
                                       "BERTH_TASK_TOKEN"};
  std::istringstream lines(read_log(1, LogStream::kStdout));
  std::size_t variables = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == "c") continue;  // the second line of GIVEN
    CAPTURE(line);
    CHECK(expected.contains(line.substr(0, line.find('='))));
    if (line.starts_with("LANG=")) CHECK(line == "LANG=xx");
    ++variables;
  }
  CHECK(variables >= 6);
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "no descriptor and no environment of the server reaches the task or its supervisor") {
  ::setenv("BERTH_SERVER_SECRET", "canary", 1);
  const int leaky = ::open("/etc/hostname", O_RDONLY);  // without close-on-exec
  auto& executor = open();
  const auto task = launch(1, {"sleep", "1000"});
  REQUIRE(executor.start(task).has_value());
  const pid_t pid = wait_for_start(task.key).pids[0];
  // For some moments after its exec the program's loader has files open, too.
  std::set<std::string> descriptors;
  CHECK(wait_until([&] {
    descriptors.clear();
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
      descriptors.insert(entry.path().filename());
    }
    return descriptors == std::set<std::string>{"0", "1", "2"};
  }));
  const auto rank = see_process(pid);
  REQUIRE(rank.has_value());
  CHECK_FALSE(has_environment_entry(rank->parent, "BERTH_SERVER_SECRET=canary"));
  CHECK(rank->parent != ::getpid());
  const std::string theirs = "/proc/" + std::to_string(rank->parent) + "/fd/" + std::to_string(leaky);
  const std::string ours = "/proc/self/fd/" + std::to_string(leaky);
  std::error_code absent;
  CHECK(std::filesystem::read_symlink(theirs, absent) != std::filesystem::read_symlink(ours));
  ::close(leaky);
  ::unsetenv("BERTH_SERVER_SECRET");
}

TEST_CASE_FIXTURE(ExecutorFixture, "ranks get their own variables and share one log") {
  auto& executor = open();
  auto task = shell(1, "echo \"rank $RANK of $WORLD_SIZE\"; printf 'no newline'");
  task.env.emplace_back("WORLD_SIZE", "3");
  for (int rank = 0; rank < 3; ++rank) task.rank_env.push_back({{"RANK", std::to_string(rank)}});
  REQUIRE(executor.start(task).has_value());
  CHECK(wait_for_exit(task.key).code == 0);
  CHECK(started.at(task.key).pids.size() == 3);
  const std::string log = read_log(1, LogStream::kStdout);
  for (const char* line : {"[0] rank 0 of 3\n", "[1] rank 1 of 3\n", "[2] rank 2 of 3\n", "[1] no newline\n"}) {
    CAPTURE(line);
    CHECK(log.find(line) != std::string::npos);
  }
}

TEST_CASE_FIXTURE(ExecutorFixture, "the first rank that fails ends the others and names the exit") {
  auto& executor = open();
  auto task = shell(1, "if [ $RANK = 1 ]; then sleep 0.2; exit 42; fi; trap '' TERM; while :; do sleep 0.05; done");
  task.grace_ms = 200;
  for (int rank = 0; rank < 3; ++rank) task.rank_env.push_back({{"RANK", std::to_string(rank)}});
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kExited);
  CHECK(exited.code == 42);
  CHECK(exited.rank == 1);
  CHECK(exited.message == "rank 1 exited with code 42");
}

TEST_CASE_FIXTURE(ExecutorFixture, "a rank that cannot start ends those that did") {
  auto& executor = open();
  auto task = launch(1, {"program"});
  std::filesystem::create_directory(path("bin"));
  std::ofstream(path("bin/program")) << "#!/bin/sh\nsleep 1000\n";
  std::filesystem::permissions(path("bin/program"), std::filesystem::perms::owner_all);
  task.rank_env = {{{"PATH", path("bin") + ":/bin:/usr/bin"}}, {{"PATH", "/nowhere"}}};
  REQUIRE(executor.start(task).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.reason == ExitReason::kStartFailed);
  CHECK(exited.rank == 1);
  CHECK(wait_until_quiet());
}

TEST_CASE_FIXTURE(ExecutorFixture, "no descendant is left, however it detached itself") {
  auto& executor = open();
  const auto task = shell(1,
                          "sleep 1001 & "
                          "setsid sh -c 'sleep 1002 & sleep 1003' & "
                          "(setsid sh -c '(sleep 1004 &) ; exit 0' &) ; "
                          "env -i BERTH_TEST_DIRECTORY=$BERTH_TEST_DIRECTORY setsid sleep 1005 & "
                          "echo up > up; sleep 0.3; exit 0");
  REQUIRE(executor.start(task).has_value());
  wait_for_file("up");
  CHECK(wait_for_exit(task.key).code == 0);
  CHECK(wait_until_quiet());
}

TEST_CASE_FIXTURE(ExecutorFixture, "fifty tasks at once") {
  auto& executor = open();
  for (std::uint64_t job = 1; job <= 50; ++job) {
    REQUIRE(executor.start(shell(job, "sleep 0.2; exit " + std::to_string(job))).has_value());
  }
  for (std::uint64_t job = 1; job <= 50; ++job) {
    CHECK(wait_for_exit({job, 1, 0, 0}).code == static_cast<int>(job));
  }
}

TEST_CASE_FIXTURE(ExecutorFixture, "one executor at a time per directory") {
  open();
  const auto second = Executor::open(options());
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == ErrorCode::kConflict);
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a supervisor that cannot be executed is an error of start, and leaves nothing behind") {
  close();
  auto opened = Executor::open({path("run"), {"/no/such/supervisor"}});
  REQUIRE(opened.has_value());
  const auto refused = (*opened)->start(shell(1, "true"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kIo);
  CHECK((*opened)->known().empty());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task runs as another user where the server is root") {
  auto& executor = open();
  if (!executor.capabilities().other_users) {
    MESSAGE("skipped: not root");
    return;
  }
  auto task = launch(1, {"sh", "-c", "id -u; id -g; id -G; echo $HOME $USER"});
  task.user = TaskUser{65534, 65534};
  task.env.clear();
  task.checkpoint_dir = path("saved");
  REQUIRE(executor.start(task).has_value());
  CHECK(wait_for_exit(task.key).code == 0);
  CHECK(read_log(1, LogStream::kStdout) == "65534\n65534\n65534\n/nonexistent nobody\n");
  struct stat status {};
  REQUIRE(::stat(task.checkpoint_dir.c_str(), &status) == 0);
  CHECK(status.st_uid == 65534);
}

}  // namespace berth::executor

// Which task a process on a GPU belongs to, by its marks.

#include <spawn.h>
#include <sys/wait.h>

#include <csignal>

#include "executor/executor_fixture.h"
#include "executor/record.h"

namespace berth::executor {

namespace {

// A process outside the task that has its token in the environment, as one has that another service started for it.
class Carrier {
 public:
  explicit Carrier(const std::string& token) {
    std::vector<std::string> words{"sleep", "600"};
    std::vector<std::string> variables{std::string(kTokenVariable) + "=" + token, "PATH=/usr/bin:/bin"};
    auto argv = pointers_to(words);
    auto envp = pointers_to(variables);
    REQUIRE(::posix_spawnp(&pid, "sleep", nullptr, nullptr, argv.data(), envp.data()) == 0);
  }
  ~Carrier() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  pid_t pid = 0;
};

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a process on a GPU belongs to the task whose marks it bears, also when that is over") {
  Executor& executor = open();
  auto task = shell(47, "sleep 600 & wait");
  task.gpus = {"GPU-a"};
  REQUIRE(executor.start(task).has_value());
  const pid_t rank = wait_for_start(task.key).pids.at(0);
  CHECK(executor.gpus_of(task.key) == std::vector<std::string>{"GPU-a"});
  CHECK(executor.has_holder("GPU-a"));
  CHECK_FALSE(executor.has_holder("GPU-b"));
  CHECK(executor.owner_of(rank, "GPU-a").belongs == Belonging::kHolder);
  CHECK(executor.owner_of(rank, "GPU-a").task == task.key);
  CHECK(executor.owner_of(rank, "GPU-b").belongs == Belonging::kOther);
  CHECK(executor.owner_of(::getpid(), "GPU-a").belongs == Belonging::kNoTask);
  CHECK(executor.owner_of(0, "GPU-a").belongs == Belonging::kUnseen);

  const auto record = read_launch(options().run_dir + "/tasks/" + to_string(task.key));
  REQUIRE(record.has_value());
  CHECK(record->launch.gpus == task.gpus);
  REQUIRE(executor.kill(task.key, 0).has_value());
  wait_for_exit(task.key);
  CHECK_FALSE(executor.has_holder("GPU-a"));
  const Carrier left(record->token);
  // Between fork and exec the child still has the environment of this test.
  REQUIRE(wait_until([&] { return executor.owner_of(left.pid, "GPU-a").belongs == Belonging::kEnded; }));
  REQUIRE(executor.forget(task.key).has_value());
  const ProcessOwner owner = executor.owner_of(left.pid, "GPU-b");
  CHECK(owner.belongs == Belonging::kEnded);
  CHECK(owner.task == task.key);
  CHECK(owner.process.pid == left.pid);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a process that ends is of no task any more, and is no stranger") {
  Executor& executor = open();
  const Carrier ending("of-no-task");
  REQUIRE(wait_until([&] { return executor.owner_of(ending.pid, "GPU-a").belongs == Belonging::kNoTask; }));
  ::kill(ending.pid, SIGKILL);  // it stays as a zombie until this test reaps it
  REQUIRE(wait_until([&] { return executor.owner_of(ending.pid, "GPU-a").belongs == Belonging::kLeaving; }));
}

TEST_CASE_FIXTURE(ExecutorFixture, "a new executor knows the GPUs of the tasks that it adopts") {
  auto task = shell(48, "sleep 600");
  task.gpus = {"GPU-a", "GPU-b"};
  REQUIRE(open().start(task).has_value());
  wait_for_start(task.key);
  close();
  Executor& executor = open();
  CHECK(executor.gpus_of(task.key) == task.gpus);
  CHECK(executor.has_holder("GPU-b"));
}

}  // namespace berth::executor

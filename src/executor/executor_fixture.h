#pragma once
// A fixture for the tests of the executor: a directory of their own, a launch that works, and waiting for observations.
// At the end of a test it checks that everything the test started is gone.

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "executor/executor.h"
#include "executor/process.h"
#include "executor/task_log.h"

namespace berth::executor {

inline constexpr std::int64_t kPatienceMs =
    60'000;  // how long a test waits for what must come; nothing takes that long

class ExecutorFixture {
 public:
  ExecutorFixture() {
    std::string name = "/tmp/berth-executor-test-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    ::chmod(directory_.c_str(), 0755);
  }

  ~ExecutorFixture() {
    if (!executor_) reopen();
    CHECK(executor_ != nullptr);
    if (executor_) end_all();
    CHECK(wait_until_quiet());
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  ExecutorFixture(const ExecutorFixture&) = delete;
  ExecutorFixture& operator=(const ExecutorFixture&) = delete;

  ExecutorOptions options() const { return {directory_ + "/run", supervised_by, obey_ms, cgroups, warn_ms, server}; }

  Executor& open() {
    reopen();
    REQUIRE(executor_ != nullptr);
    return *executor_;
  }
  void close() { executor_.reset(); }
  std::vector<std::string> executor_warnings() const { return executor_->warnings(); }

  TaskLaunch launch(std::uint64_t job, std::vector<std::string> argv) const {
    TaskLaunch launch;
    launch.key = {job, 1, 0, 0};
    launch.argv = std::move(argv);
    launch.env = {{"BERTH_TEST_DIRECTORY", directory_}};
    launch.workdir = directory_;
    launch.log_dir = directory_ + "/logs/" + std::to_string(job);
    launch.grace_ms = 5'000;
    return launch;
  }
  TaskLaunch shell(std::uint64_t job, const std::string& script) const { return launch(job, {"sh", "-c", script}); }

  bool wait_until(const std::function<bool()>& condition) {
    for (const std::int64_t begin = boot_clock_ms(); boot_clock_ms() - begin < kPatienceMs;) {
      if (executor_) absorb();
      if (condition()) return true;
      pollfd bell{executor_ ? executor_->wait_fd() : -1, POLLIN, 0};
      ::poll(&bell, 1, 20);
    }
    return false;
  }

  // Waits as wait_until does, and observes nothing meanwhile.
  static bool wait_unseen(const std::function<bool()>& condition) {
    for (const std::int64_t begin = boot_clock_ms(); boot_clock_ms() - begin < kPatienceMs;) {
      if (condition()) return true;
      ::usleep(20'000);
    }
    return false;
  }

  const Exited& wait_for_exit(const TaskKey& key) {
    REQUIRE(wait_until([&] { return exits.contains(key); }));
    return exits.at(key);
  }
  const Started& wait_for_start(const TaskKey& key) {
    REQUIRE(wait_until([&] { return started.contains(key); }));
    return started.at(key);
  }
  void wait_for_file(const std::string& name) {
    REQUIRE(wait_until([&] { return !read_file(name).empty(); }));
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string task_path(const TaskKey& key, const std::string& name) const {
    return directory_ + "/run/tasks/" + to_string(key) + "/" + name;
  }
  std::string read_file(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string read_log(std::uint64_t job, LogStream stream) const {
    const auto read = read_task_log(directory_ + "/logs/" + std::to_string(job), stream, 0, 1 << 20);
    return read ? read->bytes : "";
  }

  // Returns the processes of this test: tasks by their environment, supervisors by the directory in their arguments.
  std::vector<pid_t> find_processes() const {
    std::vector<pid_t> found = find_task_processes();
    for (const auto& process : see_all_processes()) {
      if (process.state == 'Z') continue;
      std::ifstream file("/proc/" + std::to_string(process.pid) + "/cmdline");
      const std::string command(std::istreambuf_iterator<char>(file), {});
      if (command.find(directory_ + "/run/tasks/") != std::string::npos) found.push_back(process.pid);
    }
    return found;
  }
  std::vector<pid_t> find_task_processes() const {
    std::vector<pid_t> found;
    for (const auto& process : see_all_processes()) {
      if (process.state == 'Z') continue;
      if (has_environment_entry(process.pid, "BERTH_TEST_DIRECTORY=" + directory_)) found.push_back(process.pid);
    }
    return found;
  }
  // Returns true if no process of a task is there now and every supervisor leaves. A supervisor may outlive the exit
  // that it has reported by the moment that it takes to end.
  bool nothing_is_left() { return find_task_processes().empty() && wait_until_quiet(); }
  bool wait_until_quiet() {
    return wait_until([&] { return find_processes().empty(); });
  }

  std::map<TaskKey, Started> started;
  std::map<TaskKey, Exited> exits;
  std::vector<CheckpointReported> checkpoints;
  std::vector<std::string> supervised_by = {BERTH_SUPERVISE};  // of the next open
  std::int64_t obey_ms = 8'000;
  std::int64_t warn_ms = 24 * 3'600'000;
  bool cgroups = true;
  std::string server;

 private:
  void reopen() {
    executor_.reset();
    started.clear();
    exits.clear();
    checkpoints.clear();
    auto opened = Executor::open(options());
    if (opened) executor_ = std::move(*opened);
  }

  void end_all() {
    for (const auto& key : executor_->known()) (void)executor_->kill(key, 0).has_value();
    CHECK(wait_until([&] { return exits.size() >= executor_->known().size(); }));
    for (const auto& key : executor_->known()) CHECK(executor_->forget(key).has_value());
    executor_.reset();
  }

  void absorb() {
    for (auto& observation : executor_->observe()) {
      if (auto* start = std::get_if<Started>(&observation)) {
        CHECK_FALSE(started.contains(start->key));
        started[start->key] = *start;
      } else if (auto* exit = std::get_if<Exited>(&observation)) {
        CHECK_FALSE(exits.contains(exit->key));
        exits[exit->key] = *exit;
      } else {
        checkpoints.push_back(std::get<CheckpointReported>(observation));
      }
    }
  }

  std::string directory_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace berth::executor

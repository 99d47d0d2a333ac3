#pragma once
// The executor of one machine: runs tasks as real processes, each under a small supervisor that outlives the control
// plane.
//
//  1. Everything it knows is in files below `run_dir`; a new Executor on the same directory adopts what is running and
//     reads what ended meanwhile. One Executor at a time per directory (a lock refuses a second).
//  2. A key is started at most once. `start` for a key that is known, running or exited, does nothing and succeeds.
//  3. An exit is reported only when no process of the task is left, and stays known until `forget`.
//  4. `observe` reports each thing once per Executor; a new Executor reports everything not forgotten again. Whoever
//     listens applies reports idempotently, and forgets a key only once its exit is durably recorded.
//  5. Safe to call from any thread. No call waits for a task; `start` does a few fsyncs and an exec.
//
// docs/running.md tells the whole story, with what happens on each crash.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/task.h"

namespace berth::executor {

struct ExecutorOptions {
  std::string run_dir;  // made if missing, mode 0700; tasks, their state and their control files live here
  // The program that supervises, called with the task's directory appended; it ends in supervise_main.
  std::vector<std::string> supervisor = {"/proc/self/exe", "supervise"};
};

// What this machine lets the executor enforce. A limit that cannot be enforced is a warning, never a failure.
struct Capabilities {
  bool memory_limit = false;
  bool cpu_limit = false;
  bool other_users = false;           // may run tasks as another user
  std::vector<std::string> warnings;  // one sentence each
};

class Executor {
 public:
  static Result<std::unique_ptr<Executor>> open(const ExecutorOptions& options);
  ~Executor();  // leaves every task running
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // kInvalid: a launch that can never work. kIo: the machine refused; asking again may help. That a program does not
  // exist is no error here: it is an Exited with kStartFailed.
  Result<void> start(const TaskLaunch& launch);

  // Sends `signo` to the process group of every rank. kNotFound: not known, or exited already.
  Result<void> signal(const TaskKey& key, int signo);

  // stop_signal now (nothing when grace_ms is 0), SIGKILL to every descendant after grace_ms. A second call can only
  // shorten the grace. kNotFound: not known, or exited already.
  Result<void> kill(const TaskKey& key, std::int64_t grace_ms);

  // Drops the record of an exited task; its logs stay. kConflict: has not exited. Unknown keys are fine.
  Result<void> forget(const TaskKey& key);

  // What is new. Never blocks. Also notices supervisors that died, so call it every second or two even without a ring.
  std::vector<Observation> observe();

  // Readable when observe() probably has something; observe() makes it quiet again. For poll and its like only.
  int wait_fd() const;

  // Keeps the supervisors of tasks with a lease_ms going.
  Result<void> renew_lease();

  std::vector<TaskKey> known() const;  // running or exited, not forgotten; sorted
  const Capabilities& capabilities() const;

 private:
  class Impl;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::executor

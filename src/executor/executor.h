#pragma once
// The executor of one machine runs tasks as real processes, each under a small supervisor that outlives the control
// plane.
//
// 1. Everything it knows is in files below `run_dir`. A new Executor on the same directory adopts running tasks and
//    reads what has ended meanwhile. A lock allows only one Executor at a time per directory.
// 2. A key is started at most once. `start` for a known key, running or exited, does nothing and succeeds.
// 3. An exit is reported only when the supervisor is gone and no process of the task is left, whatever its record says.
//    It stays known until `forget`.
// 4. `observe` reports each thing once per Executor; a new Executor reports everything that is not forgotten again. So
//    the caller must apply reports idempotently, and may forget a key only after its exit is durably recorded.
// 5. A supervisor that does not take up a stop (`kill`) is killed with its task, which then has ended as stopped.
// 6. Any thread may call it. No call waits for a task; `start` does a few fsyncs and an exec.
//
// docs/running.md describes it in full, with what happens on each crash.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/descriptor.h"
#include "executor/process.h"
#include "executor/task.h"
#include "model/shell_message.h"

namespace berth::executor {

struct ExecutorOptions {
  std::string run_dir;  // created if missing, mode 0700; has the tasks, their state and their control files
  // The supervisor program. It is called with the task's directory as last argument and must call supervise_main.
  // Empty: as find_supervisor_program says.
  std::vector<std::string> supervisor;
  // A supervisor that has not taken up a stop so long after its grace hangs, and is killed.
  std::int64_t obey_ms = 8'000;
  bool cgroups = true;  // false: as on a machine that allows none
  // How long a supervisor that hung is a warning.
  std::int64_t warn_ms = 24 * 3'600'000;
  // The identity of the server, the same for every copy of its data directory. Its tasks carry it. At the opening,
  // tasks that carry it and are not in run_dir are ended: another copy left them, or the records were lost. Requires:
  // no other server with this identity runs on this machine. Empty: tasks carry none, and no others are looked for.
  std::string server = {};
};

// To which task a process belongs that uses a GPU.
enum class Belonging {
  kHolder,   // to a task that runs and has the GPU
  kOther,    // to a task that runs and does not have it
  kEnded,    // to a task that is over
  kNoTask,   // to none that is known here
  kLeaving,  // it ends: its memory is gone, and what it was of is not to be seen any more; its GPU is given back yet
  kUnseen,   // no process of this number is to be seen: it has ended, or is in another pid namespace
};
struct ProcessOwner {
  Belonging belongs = Belonging::kUnseen;
  ProcessSeen process = {};     // but of kUnseen
  uid_t uid = 0;                // but of kUnseen
  std::optional<TaskKey> task;  // but of kNoTask, kLeaving and kUnseen
};

// What the executor can enforce on this machine. A limit that cannot be enforced is a warning, never an error.
struct Capabilities {
  bool memory_limit = false;
  bool cpu_limit = false;
  bool pids_limit = false;
  bool other_users = false;           // tasks can run as another user
  std::vector<std::string> warnings;  // one sentence each
};

class Executor {
 public:
  static Result<std::unique_ptr<Executor>> open(const ExecutorOptions& options);
  ~Executor();  // all tasks run on
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Starts a task. Error kInvalid: the launch can never work. Error kIo: the machine refused; another try may succeed.
  // A missing program is no error here: it becomes an Exited with kStartFailed.
  Result<void> start(const TaskLaunch& launch);

  // Sends `signo` to the process group of every rank; with signal_workers to its workers, once there are any. Error
  // kNotFound: unknown, or exited already.
  Result<void> signal(const TaskKey& key, int signo);

  // Sends stop_signal now (nothing if grace_ms is 0), and SIGKILL to every descendant after grace_ms. A second call can
  // only shorten the grace. Error kNotFound: unknown, or exited already.
  Result<void> kill(const TaskKey& key, std::int64_t grace_ms);

  // Opens a shell in a task that runs, and sends the begin. Returns a stream of framed messages
  // (model/shell_message.h); the shell ends with it. Error kNotFound: unknown, or exited already. Error kConflict: no
  // shell can be opened just now, or by this supervisor.
  Result<Descriptor> open_shell(const TaskKey& key, const ShellBegin& begin);

  // Deletes the record of an exited task; its logs stay. Error kConflict: it has not exited. An unknown key is no
  // error.
  Result<void> forget(const TaskKey& key);

  // Returns what is new, without blocking. It also notices supervisors that died, so call it every second or two even
  // without a notification.
  std::vector<Observation> observe();

  // Returns a descriptor that is readable when observe() probably has something; observe() drains it. Use it only for
  // poll and the like.
  int wait_fd() const;

  // Renews the lease of all tasks with a lease_ms, so that their supervisors do not kill them.
  Result<void> renew_lease();

  std::vector<TaskKey> known() const;    // running or exited, not forgotten; sorted
  bool knows(const TaskKey& key) const;  // known() has it

  // Returns how often all processes of the machine were looked at, for what tasks might have left running. One look
  // serves all tasks that have ended at that time, because it costs time for each process of the machine.
  std::uint64_t process_looks() const;
  const Capabilities& capabilities() const;

  // Returns the UUIDs of the GPUs that the task has, or had until it exited. Empty: none, or the task is not known.
  std::vector<std::string> gpus_of(const TaskKey& key) const;

  // Returns true if a task that has not exited has the GPU.
  bool has_holder(const std::string& gpu) const;

  // Says which task the process belongs to, which uses the GPU. It knows all tasks that are not forgotten, and those
  // with GPUs that were forgotten last, until the server starts again.
  ProcessOwner owner_of(pid_t pid, const std::string& gpu) const;

  // Returns what an operator should know of the tasks, one sentence each. A warning ends after warn_ms.
  std::vector<std::string> warnings() const;

 private:
  class Impl;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::executor

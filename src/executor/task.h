#pragma once
// What the executor is to run and what it reports, as plain values. The executor knows nothing of queues, gangs or
// quota. A task is one running unit on this machine: one process, or with `rank_env` several ranks that live and die
// together.

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/timestamp.h"

namespace berth::executor {

// One life of one task. The executor runs a key at most once, even if it or the control plane dies.
struct TaskKey {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  std::uint32_t incarnation = 0;

  auto operator<=>(const TaskKey&) const = default;
};

// "17.1.0.0": also the name of the task's directory.
std::string to_string(const TaskKey& key);
std::optional<TaskKey> parse_task_key(std::string_view text);

using Environment = std::vector<std::pair<std::string, std::string>>;

// The operating system's user that a task runs as. It has the one group and no others, so it never is in a group such
// as docker, which is as good as root.
struct TaskUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name = {};         // USER and LOGNAME; empty: what the machine's list of users has for `uid`
  std::string home = {};         // HOME; empty: likewise
  std::string shell = {};        // SHELL; empty: likewise
  bool only_runs_tasks = false;  // nothing else on this machine runs by this uid: what its last task leaves is removed
};

// A directory of this machine that the task finds at `target`, or the directory `beneath` it, which is made with the
// user's rights if it is missing.
struct TaskMount {
  std::string source;
  std::string beneath = {};  // relative; empty: the source itself
  std::string target;
  bool read_only = false;
  std::string name = {};  // which errors have; they reach the task's user, who need not know the machine's paths
};

// Copies of files of this machine that the task finds in the directory `target`: they are in memory, and the user's.
struct TaskSecrets {
  std::string target;
  std::vector<std::pair<std::string, std::string>> files;  // name in `target`, and the path of the source
  std::string name = {};                                   // which errors have
};

struct TaskLaunch {
  TaskKey key;
  std::vector<std::string> argv;       // argv[0] is looked up in the task's own PATH
  Environment env;                     // added to PATH, HOME, LANG, TZ, USER, and stronger
  std::vector<Environment> rank_env;   // one process per element, with its variables added to `env`; empty: one process
  std::string workdir;                 // must exist; empty: "/"
  std::vector<std::string> gpus = {};  // UUIDs of those that it has; the executor only remembers them
  std::optional<TaskUser> user;        // needs root; absent: the server's own user

  std::int64_t memory_limit_mib = 0;  // for all ranks together; 0: no limit
  std::int64_t cpu_milli = 0;         // for all ranks together; 0: no limit
  std::int64_t pids_limit = 0;        // processes and threads of all ranks together; 0: no limit
  std::int64_t time_limit_ms = 0;     // run time until stop_signal, then SIGKILL; 0: no limit
  std::int64_t grace_ms = 30'000;     // between stop_signal and SIGKILL, for the time limit and for a failed rank
  int stop_signal = 15;               // SIGTERM
  // Its one rank has a terminal, which open_shell attaches.
  bool terminal = false;
  std::int64_t detached_ms = 0;  // the task is ended when nobody has attached it for so long; 0: never
  // The ranks are launchers, such as torchrun: signals go to the workers that they start (workers.h).
  bool signal_workers = false;

  std::string log_dir;                    // for the output, see task_log.h; created if missing
  std::int64_t max_log_bytes = 64 << 20;  // per stream (stdout, stderr), over all its segments
  int log_segments = 4;                   // the oldest of so many segments is deleted to keep the limit

  std::string checkpoint_dir;  // watched for ack.json; created if missing; empty: not watched
  // Any of these needs root: the task gets a view of the file system of its own (task_view.h).
  std::vector<TaskMount> mounts = {};
  std::vector<TaskSecrets> secrets = {};
  std::int64_t shm_mib = 0;           // size of its own /dev/shm; 0: it has the machine's
  std::string checkpoint_mount = {};  // target of the mount that is watched for ack.json instead; empty: none
  std::int64_t lease_ms = 0;  // the supervisor kills the task if renew_lease was not called for so long; 0: never
};

enum class ExitReason {
  kExited,          // exited by itself, with `code`
  kSignalled,       // ended by a signal that was not a kill by the executor
  kTimeLimit,       // stopped for its time limit; code or signal say how it ended
  kOutOfMemory,     // killed by the kernel at its memory limit
  kKilled,          // stopped by Executor::kill; code or signal say how it ended
  kStartFailed,     // no process of it started; `message` says why
  kSupervisorLost,  // its supervisor died and its processes were killed; how it ended is unknown; the code is 70 if the
                    // machine went on
  kLeaseExpired,    // no renew_lease for lease_ms
};

const char* name_of(ExitReason reason);

struct Started {
  TaskKey key;
  Timestamp time;
  std::vector<pid_t> pids;  // by rank
};

// Reported when no process of the task is left on the machine.
struct Exited {
  TaskKey key;
  Timestamp time;
  ExitReason reason = ExitReason::kExited;
  int code = 0;                   // exit code; 127 and 126 for a program that is missing or not executable; 75 if the
                                  // machine had no process ids, memory or descriptors left to start it
  int signal = 0;                 // the signal that ended it, else 0
  int rank = 0;                   // the rank that decided: the first that failed, else the last that ended
  std::int64_t ran_ms = 0;        // by the boot clock, which is never set
  std::int64_t cpu_ms = 0;        // user and system time of all its processes
  std::int64_t peak_rss_mib = 0;  // of its largest process
  std::uint64_t bad_acks = 0;     // number of malformed ack files
  std::string message;            // one line for people; may be empty
};

// The task renamed a new ack.json into place. Of several between two looks, only the latest is reported.
struct CheckpointReported {
  TaskKey key;
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
  Timestamp time;  // when the supervisor saw it
};

using Observation = std::variant<Started, Exited, CheckpointReported>;

}  // namespace berth::executor

#pragma once
// What the executor is asked to run and what it reports. Plain values: the executor knows nothing of queues, gangs or
// quota. A task is one running unit on this machine; it is one process, or with `rank_env` several ranks that live and
// die together.

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

// One life of one task. The executor runs a key at most once, whatever happens to it or to the control plane.
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

struct TaskUser {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct TaskLaunch {
  TaskKey key;
  std::vector<std::string> argv;      // argv[0] is looked up in the task's own PATH
  Environment env;                    // what the job gets besides PATH, HOME, LANG, TZ, USER; wins over those
  std::vector<Environment> rank_env;  // one process per element, its variables over `env`; empty: one process
  std::string workdir;                // must exist; empty: "/"
  std::optional<TaskUser> user;       // needs root; absent: the server's own user

  std::int64_t memory_limit_mib = 0;  // for all ranks together; 0: no limit
  std::int64_t cpu_milli = 0;         // for all ranks together; 0: no limit
  std::int64_t time_limit_ms = 0;     // running time, after which stop_signal, then SIGKILL; 0: no limit
  std::int64_t grace_ms = 30'000;     // between stop_signal and SIGKILL, for the time limit and for a failed rank
  int stop_signal = 15;               // SIGTERM

  std::string log_dir;                    // gets the output, see task_log.h; made if missing
  std::int64_t max_log_bytes = 64 << 20;  // per stream (stdout, stderr), over all its segments
  int log_segments = 4;                   // the limit is kept by dropping the oldest of so many segments

  std::string checkpoint_dir;  // watched for ack.json; made if missing; empty: not watched
  std::int64_t lease_ms = 0;   // the supervisor kills its task when renew_lease was not called for so long; 0: never
};

enum class ExitReason {
  kExited,          // by itself, with `code`
  kSignalled,       // by a signal that the executor was not asked to send as a kill
  kTimeLimit,       // told to stop for its time limit; code or signal say how it went
  kOutOfMemory,     // killed by the kernel for its memory limit
  kKilled,          // told to stop by Executor::kill; code or signal say how it went
  kStartFailed,     // no process of it ran its program: `message` says why
  kSupervisorLost,  // its supervisor died; what was left has been killed; how it ended is not known
  kLeaseExpired,    // the control plane was not heard for lease_ms
};

const char* name_of(ExitReason reason);

struct Started {
  TaskKey key;
  Timestamp time;
  std::vector<pid_t> pids;  // by rank
};

// Seen once no process of the task is left on the machine.
struct Exited {
  TaskKey key;
  Timestamp time;
  ExitReason reason = ExitReason::kExited;
  int code = 0;                   // exit code; 127 and 126 for a program that is missing or not executable
  int signal = 0;                 // the signal that ended it, else 0
  int rank = 0;                   // the rank that decided: the first that failed, else the last that ended
  std::int64_t ran_ms = 0;        // by a clock that nobody sets
  std::int64_t cpu_ms = 0;        // user and system time of all its processes
  std::int64_t peak_rss_mib = 0;  // of its largest process
  std::uint64_t bad_acks = 0;     // ack files that could not be read as such
  std::string message;            // one line for people; may be empty
};

// The task renamed a new ack.json into place. When several come between two looks, the latest is reported.
struct CheckpointReported {
  TaskKey key;
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
  Timestamp time;  // when the supervisor saw it
};

using Observation = std::variant<Started, Exited, CheckpointReported>;

}  // namespace berth::executor

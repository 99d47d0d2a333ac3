#pragma once
// Effects: instructions to the backends, sent once the events that cause them are durable. They are derived from the
// state, so a restart derives them again. Each names its task by (job, attempt, task, incarnation), and repeating one
// changes nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/event.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/pod_risk.h"

namespace berth {

struct TaskKey {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  std::uint32_t incarnation = 1;
  auto operator<=>(const TaskKey&) const = default;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// A volume that a task finds at `path`, or the directory `beneath` it.
struct TaskVolume {
  VolumeConfig volume;
  std::string beneath = {};  // relative; it is made if it is missing; empty: the volume itself
  std::string path;
  bool read_only = false;
  bool of_job = false;  // `beneath` lies in the directory that the job has in the volume (volume_directory.h)
};

// A secret that a task finds as files in the directory `path`.
struct TaskSecret {
  SecretConfig secret;
  std::string path;
};

// What the rules that are enforced forbid to the pods of a job.
struct ForbiddenToPods {
  std::vector<ForbiddenOption> options;              // ascending, each once
  std::vector<std::vector<std::string>> host_paths;  // of each rule that allows some; each has to allow a path
  bool operator==(const ForbiddenToPods&) const = default;
};

// Starts one task on its node.
struct StartTask {
  TaskKey key;
  std::string node;
  std::string job_name;
  std::string user;
  std::string image;  // empty: a plain process
  std::vector<std::string> command;
  Environment env;                 // for all ranks of the task
  std::vector<Environment> ranks;  // one process per entry, with these variables added
  std::string workdir;
  std::vector<std::string> gpu_uuids;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  Countables countables = {};
  JobSource source = {};           // of its job
  PodRisks pod_risks = {};         // of what is forbidden: those that were judged when its job was submitted
  ForbiddenToPods forbidden = {};  // empty if no risks are known
  JobId family = {};               // its service or array; invalid: it has none
  // 0: none. The executor enforces it even while the control plane is down.
  std::int64_t time_limit_ms = 0;
  std::int64_t grace_ms = 0;
  std::int32_t stop_signal = 15;
  bool speaks = false;       // task 0: it acknowledges checkpoints for the whole job
  bool was_running = false;  // it ran before: if its executor does not know it, do not start it again
  std::vector<TaskVolume> volumes = {};
  std::vector<TaskSecret> secrets = {};
  std::int64_t shm_mib = 0;       // 0: none stated
  std::string cannot_start = {};  // why it cannot, as its queue no longer has what it mounts; empty: it can
  bool terminal = false;          // its process has a terminal, which users attach: the job is interactive
  bool signal_workers = false;    // its process is a launcher, such as torchrun: signals are for the workers it starts
};

// Sends the signal of the checkpoint contract to every rank, or with signal_workers to every worker.
struct SignalTask {
  TaskKey key;
  std::string node;
  std::int32_t signal = 15;
  std::optional<StopCause> cause = {};  // why the task is stopped; absent: a user sends a signal
};

// Sends SIGTERM, then after `grace_ms` SIGKILL, to all processes of the task.
struct KillTask {
  TaskKey key;
  std::string node;
  std::int64_t grace_ms = 0;
  std::optional<StopCause> cause = {};
};

// Tells the backend to forget the task, because its exit is durable.
struct ForgetTask {
  TaskKey key;
  std::string node;
};

using Effect = std::variant<StartTask, SignalTask, KillTask, ForgetTask>;

}  // namespace berth

#pragma once
// Effects: what the world is asked to do once the events that ask for it are durable. They are derived from state, so a
// restart derives them again; each names its task by (job, attempt, task, incarnation), and doing one twice changes
// nothing.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/event.h"
#include "model/ids.h"
#include "model/job.h"

namespace berth {

struct TaskKey {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t task = 0;
  std::uint32_t incarnation = 1;
  auto operator<=>(const TaskKey&) const = default;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

struct StartTask {
  TaskKey key;
  std::string node;
  std::string job_name;
  std::string user;
  std::string image;  // empty: a plain process
  std::vector<std::string> command;
  Environment env;                 // for every rank of the task
  std::vector<Environment> ranks;  // one process each, with these on top; a single empty one: one process
  std::string workdir;
  std::vector<std::string> gpu_uuids;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t time_limit_ms = 0;  // 0: none; the executor enforces it even while the control plane is away
  std::int64_t grace_ms = 0;
  std::int32_t stop_signal = 15;
  bool speaks = false;       // its checkpoint directory carries the job's acknowledgements
  bool was_running = false;  // seen running before: where it is no longer known it must not be started again
};

// Send the checkpoint contract's signal to every rank.
struct SignalTask {
  TaskKey key;
  std::string node;
  std::int32_t signal = 15;
};

// SIGTERM, then SIGKILL after `grace_ms` to everything the task started.
struct KillTask {
  TaskKey key;
  std::string node;
  std::int64_t grace_ms = 0;
};

// The exit is durable: the backend need not remember it any longer.
struct ForgetTask {
  TaskKey key;
  std::string node;
};

using Effect = std::variant<StartTask, SignalTask, KillTask, ForgetTask>;

}  // namespace berth

#pragma once
// The state files of a task's directory, as JSON. Each has only one writer:
//
//   launch.json      executor    what to run; the directory appears with it, by one rename
//   supervisor.json  supervisor  written before the first process starts: from now on the task may have run
//   started.json     supervisor  the ranks run their program
//   checkpoint.json  supervisor  the latest checkpoint that the task reported
//   exit.json        supervisor  nothing of the task is left (written by the executor if the supervisor died)
//   commands/N.json  executor    obeyed in the order of N, then removed

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "executor/cgroup.h"
#include "executor/process.h"
#include "executor/task.h"

namespace berth::executor {

// A variable in every process of a task, by which orphans of a dead supervisor are found.
inline constexpr std::string_view kTokenVariable = "BERTH_TASK_TOKEN";

struct LaunchRecord {
  TaskLaunch launch;
  std::string token;
  CgroupPlaces places;
};

struct SupervisorRecord {
  pid_t pid = 0;
  std::string boot;  // boot_id()
  Timestamp time;
  TaskCgroups cgroups;
};

struct StartedRecord {
  Timestamp time;
  std::vector<ProcessSeen> ranks;  // pid and start_ticks; each leads a session of its own
};

struct CheckpointRecord {
  std::uint64_t count = 0;  // number of checkpoints reported so far
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
  Timestamp time;
};

struct Command {
  enum class Kind { kSignal, kStop };
  Kind kind = Kind::kSignal;
  int signo = 0;              // kSignal
  std::int64_t grace_ms = 0;  // kStop
};

std::string encode(const LaunchRecord& record);
std::string encode(const SupervisorRecord& record);
std::string encode(const StartedRecord& record);
std::string encode(const CheckpointRecord& record);
std::string encode(const Exited& exited);  // without its key, which is the directory's name
std::string encode(const Command& command);

// Read one record. Error kNotFound: there is no such file. Error kCorrupt: the file has no such record.
Result<LaunchRecord> read_launch(const std::string& task_dir);
Result<SupervisorRecord> read_supervisor(const std::string& task_dir);
Result<StartedRecord> read_started(const std::string& task_dir);
Result<CheckpointRecord> read_checkpoint(const std::string& task_dir);
Result<Exited> read_exit(const std::string& task_dir, const TaskKey& key);
Result<Command> read_command(const std::string& path);

// "{attempt, step, time}" as a job writes it. `time` is optional and not used.
struct CheckpointAck {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
};
Result<CheckpointAck> decode_ack(std::string_view bytes);

}  // namespace berth::executor

#pragma once
// The local backend: this machine is the only node, and its executor runs the tasks (decision 0004).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/local/gpu_check.h"
#include "backend/local/task_users.h"
#include "model/effect.h"
#include "model/node.h"

namespace berth::backend {

// A node that is recorded for this backend and is not this machine. Its tasks are those that are not known to have
// ended.
struct FormerNode {
  std::string name;
  std::vector<TaskKey> tasks;
};

struct LocalOptions {
  NodeSpec node;
  // They are reported lost before the node registers. Tasks of theirs that do run here are killed first, as their GPUs
  // are those of this node.
  std::vector<FormerNode> former;
  std::string data_dir;                 // jobs/ID/... below it: logs and checkpoints; run/: the executor's own files
  std::vector<std::string> supervisor;  // empty: this program with `supervise`
  // The identity of the server, if no other server of this machine can have it (executor.h).
  std::string server = {};
  std::int64_t max_log_bytes = 64 << 20;
  std::string log = {};                // the identity of the server's log: directories of jobs in volumes bear its mark
  TaskUsers users;                     // as what user tasks run
  std::int64_t detached_ms = 600'000;  // an interactive task ends when nobody has attached its terminal for so long
  std::string output_kept;             // how long output of a finished job is kept, in words
  // Asks the driver about a GPU by its UUID (gpu_check.h). Null: the GPUs are simulated, or tasks start unchecked.
  std::function<GpuLook(const std::string&)> look_at_gpu = {};
  std::int64_t gpu_patience_ms = 10'000;  // how long a check of GPUs lasts at most
  // Returns variables that a task gets beyond those of its effect, which go before them. Null: none.
  std::function<Environment(const TaskKey&)> job_variables = {};
};

// Return the folders of the jobs, of one job, of its checkpoints, of its home, and of the captured output of a task.
std::string jobs_dir(const std::string& data_dir);
std::string job_dir(const std::string& data_dir, std::uint64_t job);
std::string checkpoint_dir(const std::string& data_dir, std::uint64_t job);
std::string home_dir(const std::string& data_dir, std::uint64_t job);
std::string log_dir(const std::string& data_dir, std::uint64_t job, std::uint32_t attempt, std::uint32_t task);

// Reads output that was captured on this machine.
Result<LogPart> read_local_log(const std::string& data_dir, const std::string& output_kept, const LogQuery& query);

std::unique_ptr<Backend> make_local_backend(LocalOptions options);

}  // namespace berth::backend

#pragma once
// Orphans: processes that a killed supervisor has left running. Normally there are none, because the ranks die with it.
// Processes that the ranks had started do not. They are found by their cgroup, by the token in their environment, by
// their session, and by their ancestors.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/cgroup.h"
#include "executor/process.h"

namespace berth::executor {

// By what the processes of a task are found. The executor keeps it in memory, because a task that runs as the server's
// own user can change or remove its own records.
struct TaskMarks {
  std::string token;                   // empty: unknown
  TaskCgroups cgroups;                 // those that the task was started in
  std::vector<ProcessSeen> ranks;      // each has led a session; of this boot only
  std::optional<uid_t> uid = {};       // by which nothing runs but tasks
  std::vector<std::string> gpus = {};  // UUIDs of the GPUs that the task has
};

// Reads the marks from the records of a task. What is missing or damaged is left empty.
TaskMarks read_marks(const std::string& task_dir);

// Returns true if the process bears a mark of the task: its control group, its session, or its token in the
// environment.
bool bears_marks(const ProcessSeen& process, const TaskMarks& marks);

// The search for the orphans of one task. One look is not enough for a process that forks and exits again and again,
// since it may be missed between the two.
struct OrphanSearch {
  const TaskMarks* marks = nullptr;
  int looks = 1;  // so many in a row must find nothing
  int quiet = 0;  // so many in a row have
  bool done() const { return quiet >= looks; }
};

// Sends SIGKILL to all orphans of these tasks until each search is done, or gives up: then it is called again later. A
// look at all processes of the machine serves all searches. Returns how many looks it took.
std::uint64_t kill_orphans(std::span<OrphanSearch> searches);

// Sends SIGKILL to all processes whose token begins with `prefix` and is none of `own`, with all below them, until two
// looks in a row have found none, or it gives up. Returns how many such tokens there were: one for each task.
std::size_t kill_strangers(const std::string& prefix, const std::set<std::string>& own);

}  // namespace berth::executor

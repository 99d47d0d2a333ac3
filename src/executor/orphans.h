#pragma once
// Orphans: processes that a killed supervisor has left running. Normally there are none, because the ranks die with it.
// Processes that the ranks had started do not. They are found by their cgroup, by the token in their environment, by
// their session, and by their ancestors.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "executor/cgroup.h"
#include "executor/process.h"

namespace berth::executor {

// By what the processes of a task are found. The executor keeps it in memory, because a task that runs as the server's
// own user can change or remove its own records.
struct TaskMarks {
  std::string token;               // empty: unknown
  TaskCgroups cgroups;             // those that the task was started in
  std::vector<ProcessSeen> ranks;  // each has led a session; of this boot only
  std::optional<uid_t> uid = {};   // by which nothing runs but tasks
};

// Reads the marks from the records of a task. What is missing or damaged is left empty.
TaskMarks read_marks(const std::string& task_dir);

// Sends SIGKILL to all orphans of the task until `looks` looks in a row have found none, and returns true. Returns
// false if that did not come about at once; then it is called again later. One look is not enough for a process that
// forks and exits again and again, since it may be missed between the two.
bool kill_orphans(const TaskMarks& marks, int looks);

}  // namespace berth::executor

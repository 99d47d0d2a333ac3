#pragma once
// Orphans: processes that a killed supervisor has left running. Normally there are none, because the ranks die with it.
// Processes that the ranks had started do not. They are found by their cgroup, by the token in their environment, by
// their session, and by their ancestors.

#include <cstddef>
#include <string>

namespace berth::executor {

// Sends SIGKILL to all orphans of the task and returns how many there were. If it returns 0, none is left.
std::size_t kill_orphans(const std::string& task_dir);

}  // namespace berth::executor

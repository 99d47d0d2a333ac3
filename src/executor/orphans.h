#pragma once
// What a supervisor that was killed has left running. Normally nothing: the ranks die with it. What they had started
// does not, and is found by its cgroup, by the token in its environment and by its session, and through its ancestors.

#include <cstddef>
#include <string>

namespace berth::executor {

// Sends SIGKILL to what is left of the task and says how many processes that were. Nothing is left once it returns 0.
std::size_t kill_orphans(const std::string& task_dir);

}  // namespace berth::executor

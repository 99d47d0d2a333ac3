#pragma once
// Whether a process belongs to a task of a berth on this machine. It does if it is in the control group of a task, or
// below a supervisor. A process cannot leave the group, and whatever loses its parent becomes a child of the
// supervisor. Not found is what another service of the machine starts for a task, such as cron, at or sshd.

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace berth::executor {

// Returns nothing if it cannot be told, because the process has ended or may not be looked at. Requires, to be about
// the right process, that `pid` is not reused meanwhile.
std::optional<bool> belongs_to_task(pid_t pid);

// Returns true if a line of /proc/PID/cgroup is that of a task: a part of its path is named as the executor names its
// places, berth- and 16 hexadecimal digits.
bool is_task_cgroup(std::string_view line);

}  // namespace berth::executor

#pragma once
// The file system as one task sees it: the machine's, with the task's volumes, secrets and /dev/shm mounted into it. It
// is a mount namespace of the task's own, so nothing of it is seen outside, and it is gone when the task is.
//
// 1. Its root is an empty tmpfs with everything that lies in the machine's root bound into it. So a place such as
//    /data/images, of which the machine has nothing, can be made without a change of the machine. A place below a
//    directory of the machine must be there. /berth of the machine is not seen.
// 2. No symbolic link is followed on the way to a source, within a volume, or on the way to a place.
// 3. Directories within a volume are found and made with the rights of the task's user, and are that user's or root's.
// 4. Volumes are mounted nosuid and nodev. Secrets lie in a tmpfs that is read-only, mode 0400, and the user's.

#include <string>

#include "base/result.h"
#include "executor/descriptor.h"
#include "executor/task.h"

namespace berth::executor {

struct TaskView {
  Descriptor mounts;       // the namespace, for setns
  Descriptor checkpoints;  // the directory at launch.checkpoint_mount; closed if there is none
};

// Returns true if the task needs a view of its own.
bool needs_view(const TaskLaunch& launch);

// Requires: this process is root and has one thread. Error kUnavailable: a source does not answer, or its server or
// disk fails; another try may succeed. Any other error is of the launch or of the machine's set-up. Errors have the
// names of volumes and secrets, and no path of a source.
Result<TaskView> make_task_view(const TaskLaunch& launch);

}  // namespace berth::executor

#pragma once
// The supervisor of one task: a process of its own that starts the ranks, captures their output, enforces the limits,
// kills all descendants at the end and records the exit. It outlives the control plane and exchanges only files with
// it.

namespace berth::executor {

// The main function of `berth-supervise TASKDIR` and `berth supervise TASKDIR`. Returns the exit status of the process.
// Requires: an Executor started it, with the lock of the task directory on descriptor 3.
int supervise_main(const char* task_dir);

}  // namespace berth::executor

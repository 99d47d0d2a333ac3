#pragma once
// The supervisor of one task: a process of its own that starts the ranks, captures their output, enforces the limits,
// kills every descendant in the end and records the exit. It outlives the control plane and talks to it by files only.

namespace berth::executor {

// `berth supervise TASKDIR`. Never returns to the caller's business: the result is the process's exit status. Only an
// Executor calls it; it expects the lock of the task directory on descriptor 3.
int supervise_main(const char* task_dir);

}  // namespace berth::executor

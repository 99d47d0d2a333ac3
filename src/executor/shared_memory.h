#pragma once
// Shared memory, semaphores and message queues that a user has left behind. They outlive their processes, and their
// memory is charged to nobody.

#include <sys/types.h>

namespace berth::executor {

// Returns true if a process of the user is there, a dead one that waits to be reaped left out.
bool has_processes(uid_t uid);

// Removes what the user has in /dev/shm and /dev/mqueue, and of System V. What cannot be removed stays.
void remove_shared_memory(uid_t uid);

}  // namespace berth::executor

#pragma once
// A supervisor hangs if it takes up no command, for example because its task has stopped it with SIGSTOP. It then keeps
// no limit and obeys no stop, but holds the lock of its task, so that the task would never end. The executor ends it:
// first everything below it, while it is still the ancestor by which that is found, and then itself.

#include <vector>

#include "executor/descriptor.h"
#include "executor/process.h"

namespace berth::executor {

// Returns the processes that hold the lock, of which `lock` is an open file without a lock of its own: the supervisor,
// whatever the records in its directory say. Never this process.
std::vector<ProcessSeen> find_lock_holders(const Descriptor& lock);

// Sends SIGKILL to everything below the holders of the lock and, once nothing is left there, to the holders. Returns
// true if it got that far; otherwise it may be called again.
bool kill_hung_supervisor(const Descriptor& lock);

}  // namespace berth::executor

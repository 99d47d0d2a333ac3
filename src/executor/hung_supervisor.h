#pragma once
// A supervisor hangs if it takes up no command, for example because its task has stopped it with SIGSTOP. It then keeps
// no limit and obeys no stop, but holds the lock of its task, so that the task would never end. The executor ends it:
// first everything below it, while it is still the ancestor by which that is found, and then itself.

#include <string>
#include <vector>

#include "executor/process.h"

namespace berth::executor {

// Returns the processes that hold the lock: the supervisor, whatever the records in its directory say. Never this
// process.
std::vector<ProcessSeen> find_lock_holders(const std::string& lock_path);

// Sends SIGKILL to everything below the holders of the lock and, once nothing is left there, to the holders. Returns
// true if it got that far; otherwise it may be called again.
bool kill_hung_supervisor(const std::string& lock_path);

}  // namespace berth::executor

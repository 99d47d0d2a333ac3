#pragma once
// Workers: the processes that a launcher such as torchrun starts in a task. A signal for the program is for them. The
// launcher itself would die of most signals, and one that puts its workers into sessions of their own (torchrun of 2.2
// and later) keeps a signal to its process group from them.

#include <vector>

#include "executor/process.h"

namespace berth::executor {

// Returns the workers below the launcher: of its descendants with LOCAL_RANK in their environment, those nearest to it.
// What a worker has started itself is left out. Empty while it has started none.
std::vector<ProcessSeen> find_workers(pid_t launcher);

// Returns true if the process lives, and its pid was not used again.
bool is_alive(const ProcessSeen& process);

}  // namespace berth::executor

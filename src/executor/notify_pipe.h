#pragma once
// A named pipe that wakes every process that has it open. It carries no message: all facts are in state files. So a
// lost or repeated notification does no harm.

#include <string>

#include "base/result.h"
#include "executor/descriptor.h"

namespace berth::executor {

Result<void> make_notify_pipe(const std::string& path);
Descriptor watch_notify_pipe(const std::string& path);  // readable after a notification
void drain_notify_pipe(const Descriptor& notify_pipe);
void notify(const std::string& path);

}  // namespace berth::executor

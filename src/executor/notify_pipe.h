#pragma once
// A named pipe that wakes whoever has it open. It carries no message: what is to be known is in state files, so a ring
// that nobody hears, or hears twice, does no harm.

#include <string>

#include "base/result.h"
#include "executor/descriptor.h"

namespace berth::executor {

Result<void> make_notify_pipe(const std::string& path);
Descriptor watch_notify_pipe(const std::string& path);  // readable after a ring
void drain_notify_pipe(const Descriptor& notify_pipe);
void notify(const std::string& path);

}  // namespace berth::executor

#pragma once
// A named pipe that wakes whoever has it open. It carries no message: what is to be known is in state files, so a ring
// that nobody hears, or hears twice, does no harm.

#include <string>

#include "base/result.h"
#include "executor/descriptor.h"

namespace berth::executor {

Result<void> make_doorbell(const std::string& path);
Descriptor listen_to_doorbell(const std::string& path);  // readable after a ring
void silence_doorbell(const Descriptor& doorbell);
void ring_doorbell(const std::string& path);

}  // namespace berth::executor

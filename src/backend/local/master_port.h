#pragma once
// MASTER_PORT of a gang on this machine. The control plane gives each gang a port that no other gang has, but it cannot
// know who listens on the machine: a job may sit on the whole range. So the port is tried where task 0 runs, and
// another one is taken where it is in use.

#include <string>

#include "base/result.h"
#include "model/effect.h"

namespace berth::backend {

// Puts another port in the place of the start's MASTER_PORT, in its environment and in the arguments of its launcher,
// if something listens on it. All tasks of an attempt get the same: the first that starts writes it to `file`, which is
// in a directory of the server. A start without MASTER_PORT stays as it is. Error kIo: no port is free, or the file
// cannot be written.
Result<void> take_master_port(StartTask& start, const std::string& file);

// Returns true if a process could listen on the port, on all addresses.
bool is_free_port(int port);

}  // namespace berth::backend

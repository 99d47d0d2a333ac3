#pragma once
// Replay of a data directory: each cycle of berth's own log that decided something is run again on the state that was,
// with all the wishes of its jobs. Unchanged, it must decide the same. Under the knobs of a file it tells how many of
// these cycles would have decided otherwise.

#include <string>

#include "base/result.h"

namespace berth::sim {

// Replays the log of the directory, under the `scheduling` of `config` unless that is empty, and returns what to print.
// Error: the log or the file cannot be read, the log's beginning was cut off, or an unchanged cycle decides something
// else.
Result<std::string> replay_directory(const std::string& directory, const std::string& config);

}  // namespace berth::sim

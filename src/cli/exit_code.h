#pragma once
// What the exit code of every command means, so that scripts can tell failures apart. `berth run` exits with the job's
// own code instead, once the job has run; `berth diff` exits with 1 for changes, and then 2 for every other failure.

#include "base/result.h"

namespace berth::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;        // the command line or a file is wrong: asking again cannot help
inline constexpr int kNotFound = 3;     // no such job, node or queue
inline constexpr int kConflict = 4;     // contradicts what is there
inline constexpr int kUnreachable = 5;  // no server, or not now
inline constexpr int kDenied = 6;       // no token, or not permitted

int exit_code_of(ErrorCode code);

}  // namespace berth::cli

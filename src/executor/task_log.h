#pragma once
// The captured output of a task. Each stream is a sequence of bytes whose offsets never change. On disk it is divided
// into segments named after the offset of their first byte, such as `stdout-00000000000000000000.log`. The oldest
// segments are deleted to keep the limit. So a reader can follow a log by one number, across rotation and restarts.
//
// With several ranks, each line begins with "[rank] ". Lines of berth itself begin with "berth: ".

#include <cstdint>
#include <string>

#include "base/result.h"

namespace berth::executor {

enum class LogStream { kStdout, kStderr };

struct LogRead {
  std::int64_t from = 0;  // offset of the bytes; later than requested if those were deleted
  std::string bytes;      // empty if there is nothing yet
  std::int64_t next = 0;  // the offset for the next call
};

// Returns at most max_bytes from offset `from` on. A negative `from` counts from the end. A missing directory or log
// reads as empty.
Result<LogRead> read_task_log(const std::string& log_dir, LogStream stream, std::int64_t from, std::int64_t max_bytes);

}  // namespace berth::executor

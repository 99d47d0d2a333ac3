#pragma once
// A task's captured output. Each stream is a run of bytes with offsets that never change; on disk it is cut into
// segments named after the offset of their first byte, `stdout-00000000000000000000.log`, of which the oldest are
// dropped to keep the limit. A reader therefore follows a log by remembering one number, across rotation and restarts.
// With several ranks every line begins with "[rank] ". What berth itself says begins with "berth: ".

#include <cstdint>
#include <string>

#include "base/result.h"

namespace berth::executor {

enum class LogStream { kStdout, kStderr };

struct LogRead {
  std::int64_t from = 0;  // where the bytes really begin: later than asked when that was dropped
  std::string bytes;      // empty: nothing there yet
  std::int64_t next = 0;  // ask from here next time
};

// At most max_bytes from `from` on. A missing directory or log reads as empty. Negative `from` counts from the end.
Result<LogRead> read_task_log(const std::string& log_dir, LogStream stream, std::int64_t from, std::int64_t max_bytes);

}  // namespace berth::executor

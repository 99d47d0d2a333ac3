#pragma once
// Reads the captured output of one task of one attempt in order, part by part.

#include <cstdint>
#include <string>

#include "cli/session.h"

namespace berth::cli {

struct LogSource {
  std::string job;
  std::int64_t attempt = 0;  // 0: the current or last one
  std::int64_t task = 0;
  bool error_stream = false;
  std::string break_glass = {};  // why it is read, where no role covers it
};

struct LogPart {
  std::string bytes;
  std::int64_t from = 0;
  std::int64_t next = 0;
  std::int64_t attempt = 0;
  bool complete = false;  // the task is over and there is no more
};

Result<LogPart> read_log(const LogSource& source, std::int64_t from, Session& session);

// Where the last `lines` lines begin.
Result<std::int64_t> find_tail(const LogSource& source, std::int64_t lines, Session& session);

// Where the last `lines` lines of `text` begin in it; 0 when it has fewer. A last line without its newline counts.
std::size_t tail_begin(std::string_view text, std::int64_t lines);

}  // namespace berth::cli

#pragma once
// The segment files of a task's log, shared by its writer and its readers.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/task_log.h"

namespace berth::executor {

struct LogSegment {
  std::int64_t offset = 0;  // offset of its first byte in the stream
  std::int64_t size = 0;
};

const char* name_of(LogStream stream);
std::string log_segment_path(const std::string& log_dir, LogStream stream, std::int64_t offset);
std::vector<LogSegment> list_log_segments(const std::string& log_dir, LogStream stream);  // oldest first

}  // namespace berth::executor

#pragma once
// The writer of task_log.h: one stream of one task, from all its ranks.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "executor/descriptor.h"
#include "executor/task_log.h"

namespace berth::executor {

class TaskLogWriter {
 public:
  // Continues after the bytes that an earlier writer left in the directory.
  TaskLogWriter(std::string log_dir, LogStream stream, std::int64_t max_bytes, int segments, int ranks);

  void write(int rank, std::string_view bytes);
  void say(std::string_view sentence);  // writes a line of berth itself
  void finish();                        // writes the unfinished lines of the ranks

 private:
  void write_line(int rank, std::string_view line);
  void append(std::string_view bytes);
  void append_piece(std::string_view bytes);
  void open_segment();
  void next_segment();
  void drop_oldest();
  std::int64_t segment_limit() const { return max_bytes_ / segments_; }

  std::string log_dir_;
  LogStream stream_;
  std::int64_t max_bytes_;
  int segments_;
  std::vector<std::string> unfinished_;  // the unfinished line of each rank; with one rank bytes are written at once
  std::deque<std::int64_t> kept_;        // offsets of the existing segments; the last one is being written
  Descriptor file_;
  std::int64_t size_ = 0;  // size of the segment that is being written
  std::int64_t lost_ = 0;  // bytes that could not be written and are not reported yet
  bool at_line_start_ = true;
};

}  // namespace berth::executor

#pragma once
// The writing end of task_log.h: one stream of one task, from all its ranks.

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
  // Goes on behind what an earlier writer left in the directory.
  TaskLogWriter(std::string log_dir, LogStream stream, std::int64_t max_bytes, int segments, int ranks);

  void write(int rank, std::string_view bytes);
  void say(std::string_view sentence);  // a line of berth's own
  void finish();                        // writes the lines that their ranks never ended

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
  std::vector<std::string> unfinished_;  // by rank, the line begun; with a single rank bytes are passed on as they come
  std::deque<std::int64_t> kept_;        // the offsets of the segments there are, the last being written
  Descriptor file_;
  std::int64_t size_ = 0;  // of the segment being written
  std::int64_t lost_ = 0;  // bytes that could not be written and have not been told of yet
  bool at_line_start_ = true;
};

}  // namespace berth::executor

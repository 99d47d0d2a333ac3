#pragma once
// Reads a part of a pod's log by offset. The API server serves a log only from its beginning, or from a time on, as
// lines that begin with their times (timestamps=true). So a place in it is remembered by the line that it is behind,
// and the next part is read from there: whoever follows a log is not sent all of it again and again.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace berth::kube {

// Where a line of a log begins.
struct LogPlace {
  std::int64_t offset = 0;  // bytes before it, times left out
  std::string time;         // of the line before it; empty: there is none
  std::int32_t same = 0;    // how many lines of this time are before it
};

// Returns the query of the request that gives the log from this place on.
std::string log_query(const LogPlace& place);

class LogReading {
 public:
  // Wants at most `max_bytes` from the offset `from`, which is not before `place`. `is_cut`: the line before `place` is
  // gone from the log, as the node has begun a new file. Then lines count that are newer than it.
  LogReading(LogPlace place, std::int64_t from, std::int64_t max_bytes, bool is_cut = false);

  // Takes a piece of the answer.
  void take(std::string_view piece);

  // After the last piece:
  bool found() const { return passed_; }  // the place was found; if not, it is to be read again as cut
  const std::string& bytes() const { return bytes_; }
  std::int64_t end() const { return place_.offset + line_bytes_; }  // offset behind all that was there
  // The last beginning of a line that is not behind the bytes.
  const LogPlace& last() const { return last_; }

 private:
  void begin_line();
  void take_text(std::string_view text);
  void end_line();

  const std::int64_t from_;
  const std::size_t max_bytes_;
  const bool is_cut_;
  const LogPlace begin_;
  bool passed_;  // the line before the first place has gone by
  // How many lines of each time there were, of the second that is being read: times need not ascend.
  std::map<std::string, std::int32_t> counts_;
  std::string second_;
  std::string time_;  // of the line that is being read
  bool in_time_ = true;
  bool skips_ = false;
  std::string bytes_;
  LogPlace place_;  // where the line that is being read begins
  std::int64_t line_bytes_ = 0;
  LogPlace last_;
};

}  // namespace berth::kube

#include "executor/task_log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "executor/log_segment.h"

namespace berth::executor {

namespace {

constexpr std::size_t kLongestLine =
    64 << 10;  // a longer one is cut, so that a rank cannot fill the supervisor's memory

}  // namespace

TaskLogWriter::TaskLogWriter(std::string log_dir, LogStream stream, std::int64_t max_bytes, int segments, int ranks)
    : log_dir_(std::move(log_dir)),
      stream_(stream),
      max_bytes_(std::max<std::int64_t>(max_bytes, 2)),
      segments_(std::clamp(segments, 2, 1000)),
      unfinished_(ranks > 1 ? static_cast<std::size_t>(ranks) : 0) {
  for (const auto& segment : list_log_segments(log_dir_, stream_)) {
    kept_.push_back(segment.offset);
    size_ = segment.size;
  }
  if (kept_.empty()) kept_.push_back(0);
  open_segment();
}

void TaskLogWriter::write(int rank, std::string_view bytes) {
  if (unfinished_.empty()) return append(bytes);
  std::string& line = unfinished_[static_cast<std::size_t>(rank)];
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    const std::size_t take = std::min({newline == bytes.npos ? bytes.size() : newline, kLongestLine - line.size()});
    line.append(bytes.substr(0, take));
    const bool ended = take == newline;
    bytes.remove_prefix(take + (ended ? 1 : 0));
    if (!ended && line.size() < kLongestLine) continue;
    write_line(rank, line);
    line.clear();
  }
}

void TaskLogWriter::write_line(int rank, std::string_view line) {
  append("[" + std::to_string(rank) + "] " + std::string(line) + "\n");
}

void TaskLogWriter::say(std::string_view sentence) {
  append((at_line_start_ ? "berth: " : "\nberth: ") + std::string(sentence) + "\n");
}

void TaskLogWriter::finish() {
  for (std::size_t rank = 0; rank < unfinished_.size(); ++rank) {
    if (!unfinished_[rank].empty()) write_line(static_cast<int>(rank), unfinished_[rank]);
    unfinished_[rank].clear();
  }
}

// Fills the segment to its limit, then goes on in the next: a segment is never larger than its share of the limit.
void TaskLogWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (size_ >= segment_limit()) next_segment();
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(segment_limit() - size_, 1));
    append_piece(bytes.substr(0, room));
    bytes.remove_prefix(std::min(room, bytes.size()));
  }
}

// Output that cannot be written is counted and dropped: a full disk must not stop the job.
void TaskLogWriter::append_piece(std::string_view bytes) {
  if (!file_.is_open()) open_segment();
  if (lost_ > 0) {
    const std::string told = "\nberth: " + std::to_string(lost_) + " bytes of output could not be written here\n";
    const ssize_t written = ::write(file_.get(), told.data(), told.size());
    size_ += std::max<std::int64_t>(written, 0);
    if (written != static_cast<ssize_t>(told.size())) {
      lost_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    lost_ = 0;
  }
  const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
  const auto kept = std::max<std::int64_t>(written, 0);
  size_ += kept;
  lost_ += static_cast<std::int64_t>(bytes.size()) - kept;
  if (kept > 0) at_line_start_ = bytes[static_cast<std::size_t>(kept) - 1] == '\n';
}

void TaskLogWriter::open_segment() {
  const std::string path = log_segment_path(log_dir_, stream_, kept_.back());
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
}

void TaskLogWriter::next_segment() {
  kept_.push_back(kept_.back() + size_);
  size_ = 0;
  open_segment();
  if (kept_.size() > static_cast<std::size_t>(segments_)) drop_oldest();
}

void TaskLogWriter::drop_oldest() {
  const std::int64_t from = kept_.front();
  ::unlink(log_segment_path(log_dir_, stream_, from).c_str());
  kept_.pop_front();
  const std::string told = "berth: over the limit of " + std::to_string(max_bytes_) + " bytes; what came before byte " +
                           std::to_string(kept_.front()) + " was dropped\n";
  append_piece(at_line_start_ ? told : "\n" + told);
}

}  // namespace berth::executor

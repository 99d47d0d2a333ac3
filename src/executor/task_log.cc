#include "executor/task_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "executor/descriptor.h"
#include "executor/log_segment.h"
#include "executor/state_file.h"

namespace berth::executor {

std::string log_segment_path(const std::string& log_dir, LogStream stream, std::int64_t offset) {
  char name[64];
  std::snprintf(name, sizeof name, "%s-%020lld.log", name_of(stream), static_cast<long long>(offset));
  return log_dir + "/" + name;
}

const char* name_of(LogStream stream) {
  switch (stream) {
    case LogStream::kStdout:
      return "stdout";
    case LogStream::kStderr:
      return "stderr";
  }
  return "?";
}

std::vector<LogSegment> list_log_segments(const std::string& log_dir, LogStream stream) {
  std::vector<LogSegment> segments;
  DIR* directory = ::opendir(log_dir.c_str());
  if (directory == nullptr) return segments;
  const std::string format = std::string(name_of(stream)) + "-%20lld.log";
  while (const dirent* entry = ::readdir(directory)) {
    long long offset = 0;
    struct stat status {};
    if (std::sscanf(entry->d_name, format.c_str(), &offset) != 1 || offset < 0) continue;
    const std::string path = log_segment_path(log_dir, stream, offset);
    if (::stat(path.c_str(), &status) == 0) segments.push_back({offset, status.st_size});
  }
  ::closedir(directory);
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return segments;
}

Result<LogRead> read_task_log(const std::string& log_dir, LogStream stream, std::int64_t from, std::int64_t max_bytes) {
  const auto segments = list_log_segments(log_dir, stream);
  const std::int64_t end = segments.empty() ? 0 : segments.back().offset + segments.back().size;
  LogRead read;
  read.from = from < 0 ? std::max<std::int64_t>(end + from, 0) : from;
  if (!segments.empty()) read.from = std::max(read.from, segments.front().offset);
  read.next = read.from;
  for (const auto& segment : segments) {
    if (read.next < segment.offset) {
      if (!read.bytes.empty()) break;
      read.from = read.next = segment.offset;
    }
    const std::int64_t segment_end = segment.offset + segment.size;
    const std::int64_t wanted = std::min(segment_end - read.next, max_bytes - (read.next - read.from));
    if (wanted <= 0) continue;
    const std::string path = log_segment_path(log_dir, stream, segment.offset);
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    // The segment was deleted after the listing. What was read so far is returned; the next call finds the new
    // beginning.
    if (!file.is_open() && errno == ENOENT) break;
    if (!file.is_open()) return system_error("open", path, errno);
    const std::size_t before = read.bytes.size();
    read.bytes.resize(before + static_cast<std::size_t>(wanted));
    const ssize_t count =
        ::pread(file.get(), read.bytes.data() + before, static_cast<std::size_t>(wanted), read.next - segment.offset);
    if (count < 0) return system_error("read", path, errno);
    read.bytes.resize(before + static_cast<std::size_t>(count));
    read.next += count;
  }
  return read;
}

}  // namespace berth::executor

#include "sim/trace/bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace berth::sim {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK) {}
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_;
};

Error io_error(const std::string& path) { return {ErrorCode::kIo, path + ": " + std::strerror(errno)}; }
Error too_large(const std::string& name, std::size_t max_bytes) {
  return {ErrorCode::kTooLarge, name + ": more than " + std::to_string(max_bytes) + " bytes"};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return io_error(path);
  if (S_ISDIR(status.st_mode)) return invalid(path + ": is a directory");
  std::string bytes;
  std::array<char, 1U << 16U> buffer{};
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(path);
    if (count == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(count) > max_bytes) return too_large(path, max_bytes);
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> unpack_gzip(const std::string& name, std::string_view bytes, std::size_t max_bytes) {
  Inflater inflater;
  if (!inflater.ready()) return Error{ErrorCode::kIo, name + ": zlib refused to start"};
  z_stream& stream = inflater.stream();
  std::string text;
  std::array<char, 1U << 16U> buffer{};
  std::string_view rest = bytes;
  for (;;) {
    const std::size_t piece = std::min<std::size_t>(rest.size(), std::numeric_limits<uInt>::max());
    // zlib's interface predates const: it does not write through next_in.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t unpacked = buffer.size() - stream.avail_out;
    if (text.size() + unpacked > max_bytes) return too_large(name + " unpacked", max_bytes);
    text.append(buffer.data(), unpacked);
    rest.remove_prefix(piece - stream.avail_in);
    if (status == Z_STREAM_END) {
      if (rest.empty()) return text;
      if (inflateReset(&stream) != Z_OK) return Error{ErrorCode::kCorrupt, name + ": damaged gzip"};
    } else if (status != Z_OK || (rest.empty() && unpacked == 0)) {
      return Error{ErrorCode::kCorrupt, name + (rest.empty() ? ": gzip file is cut short" : ": damaged gzip")};
    }
  }
}

}  // namespace berth::sim

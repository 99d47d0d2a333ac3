#include "executor/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "executor/descriptor.h"

namespace berth::executor {

namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Error system_error(std::string_view action, std::string_view path, int error_number) {
  const ErrorCode code = error_number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return {code, std::string(action) + " " + std::string(path) + ": " + std::generic_category().message(error_number)};
}

Result<void> replace_state_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".new";
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open()) return system_error("open", temporary, errno);
    if (auto written = write_all(file.get(), bytes, temporary); !written) return written.error();
    if (::fsync(file.get()) != 0) return system_error("fsync", temporary, errno);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_error("rename", temporary, errno);
  return sync_directory(directory_of(path));
}

Result<std::string> read_state_file(const std::string& path, std::size_t limit, std::optional<uid_t> owner) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) return system_error("open", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kIo, path + " is not a regular file"};
  if (owner && status.st_uid != *owner) return Error{ErrorCode::kDenied, path + " belongs to another user"};
  std::string bytes;
  char buffer[4096];
  while (true) {
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", path, errno);
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(count));
    if (bytes.size() > limit) return Error{ErrorCode::kTooLarge, path + " is over " + std::to_string(limit) + " bytes"};
  }
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Result<void> sync_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return system_error("open", path, errno);
  if (::fsync(directory.get()) != 0) return system_error("fsync", path, errno);
  return {};
}

Result<void> make_directories(const std::string& path, unsigned mode) {
  for (std::size_t end = 1; end != std::string::npos && !path.empty();) {
    end = path.find('/', end);
    const std::string prefix = path.substr(0, end);
    if (::mkdir(prefix.c_str(), mode) != 0 && errno != EEXIST) return system_error("mkdir", prefix, errno);
    if (end != std::string::npos) ++end;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return system_error("stat", path, errno);
  if (!S_ISDIR(status.st_mode)) return system_error("mkdir", path, ENOTDIR);
  return {};
}

}  // namespace berth::executor

#include "store/data_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "store/disk.h"
#include "store/postgres_mark.h"

namespace berth::store {

namespace {

constexpr int kMostTries = 500;
constexpr int kBetweenTriesMs = 10;

// Returns the pid in the lock file, or "" if there is none.
std::string pid_in(int lock) {
  char text[32] = {};
  const ssize_t length = ::pread(lock, text, sizeof(text) - 1, 0);
  std::string pid(text, length > 0 ? static_cast<std::size_t>(length) : 0);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  return pid;
}

std::string holder_of(int lock) {
  const std::string pid = pid_in(lock);
  return pid.empty() ? "another process" : "process " + pid;
}

bool holder_is_gone(int lock) {
  const int pid = std::atoi(pid_in(lock).c_str());
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

// Returns true if the lock is taken. A server that was killed while it started a process has left the lock to that
// process until it runs its own program. So it waits for the lock, for a few seconds at most.
bool lock_it(int lock) {
  for (int tries = 0; ::flock(lock, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK || tries == kMostTries) return false;
    if (!holder_is_gone(lock)) {
      errno = EWOULDBLOCK;
      return false;
    }
    ::poll(nullptr, 0, kBetweenTriesMs);
  }
  return true;
}

// Returns true if nothing is in the directory, or the log of a server is.
bool is_of_a_server(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::exists(path / "log.db", failure)) return true;
  if (const auto mark = read_postgres_mark(path); mark && *mark) return true;
  return std::filesystem::is_empty(path, failure) && !failure;
}

// Takes an existing directory from group and others: the log holds the environment of all jobs, with their secrets. A
// directory with other files in it may be anything, so it is refused instead.
Result<void> close_to_others(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return io_error(path.string(), "stat", errno);
  const mode_t mode = status.st_mode & 07777U;
  const bool is_closed = (mode & 0077U) == 0;
  const bool is_passage = mode == 0711U && is_of_a_server(path);  // for tasks that run as users of their own
  if (is_closed || is_passage || !S_ISDIR(status.st_mode)) return {};
  const std::string open_to_others =
      fmt::format("{} has mode {:04o}, and the log in it keeps secrets of jobs (env)", path.string(), mode);
  if (!is_of_a_server(path))
    return Error{ErrorCode::kDenied, open_to_others +
                                         "; it has other files, so it is left as it is: chmod 700 it, or "
                                         "name a directory of its own"};
  if (::chmod(path.c_str(), 0700) != 0)
    return Error{ErrorCode::kDenied, open_to_others + "; its owner has to chmod 700 it"};
  return {};
}

Result<void> make_directory(const std::filesystem::path& path) {
  std::error_code failure;
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  std::filesystem::create_directories(parent, failure);
  if (failure) return io_error(parent.string(), "make the directory", failure.value());
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return close_to_others(path);
    return io_error(path.string(), "make the directory", errno);
  }
  return sync_directory(parent);
}

}  // namespace

Result<std::vector<std::string>> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  std::filesystem::directory_iterator entry(directory, failure);
  while (!failure && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(failure);
  }
  if (failure) return io_error(directory.string(), "read", failure.value());
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> sync_directory(const std::filesystem::path& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return io_error(path.string(), "open", errno);
  const int synced = ::fsync(directory);
  const int error_number = errno;
  ::close(directory);
  if (synced != 0) return io_error(path.string(), "sync", error_number);
  return {};
}

Result<DataDirectory> DataDirectory::take(const std::filesystem::path& path) {
  if (const auto made = make_directory(path); !made) return made.error();
  const std::string file = (path / "lock").string();
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return io_error(file, "open", errno);
  DataDirectory directory(lock);
  if (!lock_it(lock)) {
    if (errno != EWOULDBLOCK) return io_error(file, "lock", errno);
    return conflict(fmt::format("{} is in use by {}; a data directory has one server", path.string(), holder_of(lock)));
  }
  // The pid is only for the message above. Only the lock counts, and it ends with the process.
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock, 0) != 0 || ::pwrite(lock, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return io_error(file, "write", errno);
  }
  return directory;
}

DataDirectory::~DataDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace berth::store

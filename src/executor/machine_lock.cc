#include "executor/machine_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/hash.h"
#include "executor/process.h"
#include "executor/state_file.h"

namespace berth::executor {

namespace {

constexpr std::uint64_t kFirstOfDirectories = std::uint64_t{1} << 62;  // above every uid
constexpr int kBetweenTriesMs = 10;

std::string path_of_locks() {
  const auto variable = [](const char* name) {
    const char* value = ::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string given = variable("BERTH_LOCK_DIR"); !given.empty()) return given + "/berth-machine.lock";
  if (::geteuid() == 0) return "/run/berth-machine.lock";
  if (const std::string own = variable("XDG_RUNTIME_DIR"); !own.empty()) return own + "/berth-machine.lock";
  return "/tmp/berth-machine-" + std::to_string(::geteuid()) + ".lock";
}

}  // namespace

Result<MachineLock> MachineLock::open() {
  const std::string path = path_of_locks();
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return Error{ErrorCode::kIo, system_error("open", path, errno).message};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Error{ErrorCode::kIo, system_error("stat", path, errno).message};
  if (status.st_uid != ::geteuid())
    return Error{ErrorCode::kDenied, path + " belongs to another user; remove it, and start again"};
  return MachineLock(std::move(file));
}

bool MachineLock::take(std::uint64_t byte, std::int64_t patience_ms) const {
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = static_cast<off_t>(byte);
  wanted.l_len = 1;
  const std::int64_t begin = boot_clock_ms();
  while (::fcntl(file_.get(), F_OFD_SETLK, &wanted) != 0) {
    if (boot_clock_ms() - begin >= patience_ms) return false;
    ::poll(nullptr, 0, kBetweenTriesMs);
  }
  return true;
}

std::uint64_t lock_of_directory(const std::string& identity) {
  return kFirstOfDirectories | (Hasher().add(identity).digest() >> 2U);
}

}  // namespace berth::executor

#include "executor/notify_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "executor/state_file.h"

namespace berth::executor {

Result<void> make_notify_pipe(const std::string& path) {
  if (::mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST) return system_error("mkfifo", path, errno);
  return {};
}

// Opened for writing, too, so that opening does not block without a writer, and the pipe does not end when a writer
// goes away.
Descriptor watch_notify_pipe(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

void drain_notify_pipe(const Descriptor& notify_pipe) {
  char buffer[256];
  while (::read(notify_pipe.get(), buffer, sizeof buffer) > 0) {
  }
}

void notify(const std::string& path) {
  const Descriptor bell(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (bell.is_open()) (void)!::write(bell.get(), "!", 1);
}

}  // namespace berth::executor

#pragma once
// Locks of this machine that servers hold against each other, whatever their data directories are: one file, in which
// each lock is one byte. The kernel keeps a lock as long as its holder has the file open, so no crash leaves one
// behind.
//
// The file is berth-machine.lock in /run, of a server that is not root in $XDG_RUNTIME_DIR or, with its uid in the
// name, in /tmp. Tests have another directory, $BERTH_LOCK_DIR.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "executor/descriptor.h"

namespace berth::executor {

class MachineLock {
 public:
  // Error kIo or kDenied: the file cannot be opened, or belongs to another user.
  static Result<MachineLock> open();

  // Returns true if the lock is this one's, now or already. A server that was killed while it started a process leaves
  // its locks to that process for a moment; `patience_ms` is how long to wait for it.
  bool take(std::uint64_t byte, std::int64_t patience_ms = 0) const;

 private:
  explicit MachineLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

inline constexpr std::int64_t kMachineLockPatienceMs = 3'000;

// The byte of the uid that tasks run as.
inline std::uint64_t lock_of_uid(uid_t uid) { return uid; }

// The byte of the data directory with this identity (daemon/machine.h). Every copy of the directory has the same.
std::uint64_t lock_of_directory(const std::string& identity);

}  // namespace berth::executor

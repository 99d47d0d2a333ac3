#pragma once
// A thin SQLite VFS over the system's own: every write and sync of SQLite's files passes a Disk first, which counts it,
// may delay or fail it, and stops everything after the first failure. Reading, locking and shared memory go straight
// through.

#include <sqlite3.h>

#include <string>

#include "store/disk.h"

namespace berth::store {

// Registered under a name of its own while it lives; it must outlive every connection opened with that name.
class ShimVfs {
 public:
  explicit ShimVfs(Disk& disk);
  ~ShimVfs();
  ShimVfs(const ShimVfs&) = delete;
  ShimVfs& operator=(const ShimVfs&) = delete;

  const char* name() const { return name_.c_str(); }

 private:
  std::string name_;
  sqlite3_vfs vfs_;
};

}  // namespace berth::store

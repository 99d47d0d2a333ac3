#pragma once
// A thin SQLite VFS over the one of the system. Each write and sync of SQLite's files goes through a Disk first, which
// counts it, may delay or fail it, and refuses everything after the first failure. Reads, locks and shared memory go
// directly to the system.

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

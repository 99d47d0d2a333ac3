#pragma once
// The directory that one log lives in. Whoever opens the log for writing holds an exclusive lock on the file `lock` in
// it until it is closed or its process ends, so that two servers never share a directory.

#include <filesystem>

#include "base/result.h"

namespace berth::store {

class DataDirectory {
 public:
  // Makes the directory (mode 0700) where there is none. kConflict, naming the process, where another one holds the
  // lock.
  static Result<DataDirectory> take(const std::filesystem::path& path);

  DataDirectory() = default;
  ~DataDirectory();
  DataDirectory(DataDirectory&& other) noexcept : lock_(std::exchange(other.lock_, -1)) {}
  DataDirectory& operator=(DataDirectory&& other) noexcept {
    std::swap(lock_, other.lock_);
    return *this;
  }

 private:
  explicit DataDirectory(int lock) : lock_(lock) {}
  int lock_ = -1;
};

// Makes names that were added to the directory durable.
Result<void> sync_directory(const std::filesystem::path& path);

}  // namespace berth::store

#pragma once
// The directory of one log. A process that opens the log for writing holds an exclusive lock on the file `lock` in it,
// until it closes the log or ends. So two servers never share a directory.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::store {

class DataDirectory {
 public:
  // Creates the directory (mode 0700) if it is missing, and takes the lock. An existing directory that group or others
  // may enter is set to 0700 if it is empty or has a log; one with mode 0711 and a log is left so, because files in it
  // have mode 0600. Errors: kConflict if another process, named in the message,
  // holds the lock; kDenied if the directory is open to others and cannot be closed.
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

// Returns the names in the directory, sorted. Error kIo, also where the file system fails half-way.
Result<std::vector<std::string>> names_in(const std::filesystem::path& directory);

// Makes names that were added to the directory durable.
Result<void> sync_directory(const std::filesystem::path& path);

}  // namespace berth::store

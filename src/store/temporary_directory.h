#pragma once
// A directory for one test, removed at its end, and the log in it.

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "store/sqlite_log.h"

namespace berth::store {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    // In memory if the machine has such a file system: these tests inject their failures, and real syncs would only
    // slow them.
    const bool in_memory = ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent = in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "berth-store-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  // The path of the data directory. It does not exist yet: the log creates it.
  std::filesystem::path path() const { return root_ / "data"; }

 private:
  std::filesystem::path root_;
};

inline std::unique_ptr<SqliteLog> opened(const std::filesystem::path& directory, const SqliteOptions& options = {}) {
  auto log = SqliteLog::open(directory, options);
  REQUIRE_MESSAGE(log.has_value(), (log ? std::string() : log.error().message));
  return std::move(*log);
}

}  // namespace berth::store

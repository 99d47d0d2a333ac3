#pragma once
// A file that this process has open, and whether its name still leads to it. What is written to a file that was
// removed, or that another one has replaced, is gone with the process.

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/result.h"

namespace berth::store {

class FileInPlace {
 public:
  // Notes which file is at the path now.
  static Result<FileInPlace> note(const std::filesystem::path& path);

  // Error kIo: the file was removed, or there is another one.
  Result<void> check() const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace berth::store

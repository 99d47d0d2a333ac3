#include "store/file_in_place.h"

#include <sys/stat.h>

#include <cerrno>

#include "store/disk.h"

namespace berth::store {

Result<FileInPlace> FileInPlace::note(const std::filesystem::path& path) {
  FileInPlace file;
  file.path_ = std::filesystem::absolute(path).string();
  struct stat status {};
  if (::stat(file.path_.c_str(), &status) != 0) return io_error(file.path_, "stat", errno);
  file.device_ = status.st_dev;
  file.inode_ = status.st_ino;
  return file;
}

Result<void> FileInPlace::check() const {
  struct stat status {};
  const bool is_there = ::stat(path_.c_str(), &status) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) return io_error(path_, "stat", errno);
  if (!is_there) return Error{ErrorCode::kIo, path_ + " was removed while the server had it open"};
  if (status.st_dev == device_ && status.st_ino == inode_) return {};
  return Error{ErrorCode::kIo, path_ + " was replaced by another file while the server had it open"};
}

}  // namespace berth::store

#include "daemon/disk_reserve.h"

#include <sys/statvfs.h>

#include <algorithm>

namespace berth::daemon {

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

}  // namespace

std::uint64_t disk_reserve(std::uint64_t total) {
  return std::min(std::clamp(total / 100, 64 * kMib, 1024 * kMib), total / 4);
}

Result<void> check_disk_reserve(const std::string& directory) {
  struct statvfs disk {};
  if (::statvfs(directory.c_str(), &disk) != 0) return {};
  const std::uint64_t block = disk.f_frsize;
  const std::uint64_t left = disk.f_bavail * block;
  const std::uint64_t reserve = disk_reserve(disk.f_blocks * block);
  if (left >= reserve) return {};
  return Error{ErrorCode::kUnavailable, "no job is taken: the disk of " + directory + " has " +
                                            std::to_string(left / kMib) + " MiB left, and the last " +
                                            std::to_string(reserve / kMib) +
                                            " MiB are kept for the jobs that run; free some space and try again"};
}

}  // namespace berth::daemon

#pragma once
// The reserve on the disk of the data directory. Below it no job is admitted any more, so that what is left stays for
// stops, reports and the events of the jobs that run.

#include <cstdint>
#include <string>

#include "base/result.h"

namespace berth::daemon {

// Returns the reserve on a disk of `total` bytes: 1 % of it, at least 64 MiB and at most 1 GiB, but no more than a
// quarter of the disk.
std::uint64_t disk_reserve(std::uint64_t total);

// Error kUnavailable: less than the reserve is free on the disk of the directory. A disk that cannot be asked is no
// error.
Result<void> check_disk_reserve(const std::string& directory);

}  // namespace berth::daemon

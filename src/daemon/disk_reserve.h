#pragma once
// The reserve on the disk of the data directory. Below it nothing is taken that users ask for but stops, so that what
// is left stays for those, for reports and the events of the jobs that run, and for what administrators do about it.
// And how much of the event log each of those requests takes, for the limit of its subject and day
// (policy/day_limit.h).

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/command.h"

namespace berth::daemon {

// Returns the reserve on a disk of `total` bytes: 1 % of it, at least 64 MiB and at most 1 GiB, but no more than a
// quarter of the disk.
std::uint64_t disk_reserve(std::uint64_t total);

// Returns true for a command that is taken all the same: one that ends something, that only operators and
// administrators may give, or that a running job reports by.
bool may_use_reserve(const Command& command);

// Error kUnavailable: less than the reserve is free on the disk of the directory. A disk that cannot be asked is no
// error.
Result<void> check_disk_reserve(const std::string& directory);

// What a job writes from its start to its end beside its document, as measured (docs/install-managed.md, Size).
inline constexpr std::uint64_t kBytesOfAJob = 1'100;
// More than any change of one thing writes.
inline constexpr std::uint64_t kBytesOfAChange = 512;

// Returns the bytes that the command will have written, at least: for an array those of all elements, each of which has
// the document of its own. 0: it is not counted, because it may use the reserve.
std::uint64_t log_cost(const Command& command);

}  // namespace berth::daemon

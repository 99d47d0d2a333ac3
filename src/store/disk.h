#pragma once
// Disk: what all files of one log share. It counts writes and syncs. It remembers the first one that failed and refuses
// all later ones (contract, sentence 9). For benchmarks and crash tests it delays each sync, or injects one fault at
// the n-th write or sync. SQLite's files use it through shim_vfs, the log's own files directly.
//
// A fault is written OPERATION:N:ACTION, as in BERTH_STORE_FAULT=fsync:3:eio
//
//   operation  write | fsync       N counts from 1, over all files of the log, since it was opened
//   action     eio                 the operation fails
//              full                the write fails because the disk is full (write only)
//              short               half of the bytes are written, then it fails (write only)
//              kill                half of the bytes are written, then the process is killed; a sync is not made
//              power               as kill, and every byte that was not synced is gone
//              torn                as power, but each unsynced 512-byte sector is gone or there at random (seeded by N)

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/log.h"

namespace berth::store {

enum class DiskOperation { kWrite, kFsync };
enum class DiskAction { kEio, kFull, kShort, kKill, kPower, kTorn };

struct DiskFault {
  DiskOperation operation = DiskOperation::kWrite;
  std::uint64_t nth = 1;
  DiskAction action = DiskAction::kEio;
};

Result<DiskFault> parse_disk_fault(std::string_view text);

// What the caller of next_write or next_sync has to do.
enum class DiskStep { kGo, kFail, kFull, kHalfThenFail, kHalfThenDie };

class Disk {
 public:
  Disk(std::optional<DiskFault> fault, std::uint32_t fsync_delay_ms);

  // Count the operation that the caller is about to make on `path`. If the step is a failure, it is already remembered.
  DiskStep next_write(const std::string& path);
  DiskStep next_sync(const std::string& path);
  void count_read() { reads_.fetch_add(1, std::memory_order_relaxed); }
  // Ends the process as the fault says.
  [[noreturn]] void die();

  void note_failure(const std::string& what);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Returns kIo with the first failure.
  Error failure() const;

  // For power cuts: remember() notes the bytes that a write replaces; forget() notes that all writes of a file are on
  // the disk.
  bool undoes() const { return undoes_; }
  void remember(const std::string& path, std::uint64_t offset, std::uint64_t size, std::string replaced);
  void forget(const std::string& path);

  // The same operations for files that SQLite does not know.
  Result<void> write(int file, const std::string& path, std::uint64_t offset, std::string_view bytes);
  Result<void> sync(int file, const std::string& path);
  Result<void> rename(const std::string& from, const std::string& to);

  std::uint64_t fsyncs() const { return syncs_.load(std::memory_order_relaxed); }
  std::uint64_t reads() const { return reads_.load(std::memory_order_relaxed); }

 private:
  struct Unsynced {
    std::string path;
    std::uint64_t offset;
    std::uint64_t size;    // size of the file before the write
    std::string replaced;  // the old bytes, zeros beyond its end
  };

  bool due(DiskOperation operation, std::uint64_t count) const;
  DiskStep inject(const std::string& path);
  void cut_power();

  const std::optional<DiskFault> fault_;
  const std::uint32_t fsync_delay_ms_;
  const bool undoes_;
  std::atomic<std::uint64_t> writes_ = 0;
  std::atomic<std::uint64_t> syncs_ = 0;
  std::atomic<std::uint64_t> reads_ = 0;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::string failure_;
  std::vector<Unsynced> unsynced_;
};

// "log.db-wal: cannot write: No space left on device"
Error io_error(const std::string& path, std::string_view doing, int error_number);

}  // namespace berth::store

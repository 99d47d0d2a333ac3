#pragma once
// Backups at intervals, made by the server itself on a thread of its own: the loop never waits for them. An old one is
// removed only once a new one was made and checked. A failure is a warning of `berth status` and is counted; it is
// tried again after ten minutes.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/backup.h"
#include "daemon/server_clock.h"

namespace berth::daemon {

struct BackupFlags {
  std::string to;  // the directory that the backups are in; empty: none are made
  std::int64_t every_s = 86'400;
  std::uint64_t keep = 7;
};

// The backups in one directory, by names that sort by time: backup-20261121T081530250Z. Other names are left alone.
class BackupShelf {
 public:
  BackupShelf(std::string data_dir, BackupFlags flags) : data_dir_(std::move(data_dir)), flags_(std::move(flags)) {}

  // Makes one, then removes the oldest ones over the number that is kept, and what an earlier server left unfinished.
  // One whose log is not the beginning of the new one's is never removed: the warnings say so.
  Result<Backup> add(Timestamp now, const std::function<bool()>& go_on) const;
  // Returns when the newest was made, or nothing. What is dated after `now` was made by a clock that was ahead.
  std::optional<Timestamp> newest(Timestamp now) const;

 private:
  std::vector<std::string> all_names() const;
  // The finished ones, oldest first.
  std::vector<std::string> names() const;
  void remove_unfinished() const;
  bool is_contained(const std::string& older, const Backup& newer) const;
  void remove_old(Backup& made) const;

  const std::string data_dir_;
  const BackupFlags flags_;
};

class BackupSchedule {
 public:
  BackupSchedule(std::string data_dir, BackupFlags flags, ServerClock& clock);
  ~BackupSchedule();
  BackupSchedule(const BackupSchedule&) = delete;
  BackupSchedule& operator=(const BackupSchedule&) = delete;

  void start();
  void stop();  // gives up a backup that is being made

  struct Status {
    std::optional<Timestamp> last;  // the newest good one
    std::uint64_t failures = 0;     // since the start
    std::string warning;            // why the last one failed; empty: it did not
  };
  Status status() const;

 private:
  void run();
  // Returns when the next one is due.
  Timestamp make_one();

  const BackupShelf shelf_;
  const BackupFlags flags_;
  ServerClock& clock_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // guards status_
  std::condition_variable stopped_;
  Status status_;
  std::thread thread_;
};

}  // namespace berth::daemon

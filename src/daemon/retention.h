#pragma once
// Retention: output and checkpoints of finished jobs, in jobs/ID, are kept for a while and then removed. The log says
// which jobs have finished and when. The directory of a live job is kept, because the job may resume from its
// checkpoint. A directory that the log does not know is kept, too.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/timestamp.h"
#include "daemon/server_clock.h"
#include "store/log.h"

namespace berth::daemon {

// How long and how much is kept; nothing means no limit. Above the size limit, the jobs that finished first are removed
// first.
struct KeepFinished {
  std::optional<std::int64_t> seconds = 7 * 86'400;
  std::optional<std::int64_t> bytes = std::nullopt;  // limit for all finished jobs together
};

// Returns the limits in words: "7d after a job's end, 64GiB in all".
std::string words_of(const KeepFinished& keep);

// The directories of finished jobs in one data directory. Such a directory does not grow any more, so it is measured
// only once.
class Leavings {
 public:
  Leavings(std::string data_dir, const store::Log& log, KeepFinished keep);
  // Removes the directories that exceed the limits. Returns how many.
  std::size_t sweep(Timestamp now);

 private:
  struct Left {
    Timestamp finished;
    std::int64_t bytes = 0;
  };

  void look();
  bool remove(std::uint64_t job);

  const std::string data_dir_;
  const store::Log& log_;
  const KeepFinished keep_;
  std::map<std::uint64_t, Left> left_;
};

// Sweeps now and then on a thread of its own, outside the loop.
class Retention {
 public:
  Retention(std::string data_dir, const store::Log& log, KeepFinished keep, ServerClock& clock);
  ~Retention();
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;

 private:
  void run();

  Leavings leavings_;
  ServerClock& clock_;
  const std::int64_t pause_s_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::daemon

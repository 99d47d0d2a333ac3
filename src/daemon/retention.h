#pragma once
// What finished jobs leave on this machine, their output and checkpoints in jobs/ID, is kept for a while and then
// removed. The log knows which jobs have finished and when; a directory of a job that is live, so that it may resume
// from its checkpoint, or that the log does not know, is left alone.

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

// Nothing means without end. Over the size the jobs that finished first go first.
struct KeepFinished {
  std::optional<std::int64_t> seconds = 7 * 86'400;
  std::optional<std::int64_t> bytes = std::nullopt;  // of all finished jobs together
};

// "7d after a job's end, 64GiB in all"
std::string words_of(const KeepFinished& keep);

// What the finished jobs of one data directory have left. A finished job's directory does not grow any more, so it is
// measured once.
class Leavings {
 public:
  Leavings(std::string data_dir, const store::Log& log, KeepFinished keep);
  // Removes what is older or more than is to be kept; how many jobs' directories.
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

// Sweeps now and then on a thread of its own, off the loop.
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

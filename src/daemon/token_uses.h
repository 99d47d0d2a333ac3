#pragma once
// Keeps across restarts when each of the server's own tokens was last used: once a minute, and when the server stops,
// what is new is written to token-uses.json in the data directory. A crash loses the uses of the last minute. It is no
// event, since nothing is decided by it, and a log of uses would be as long as that of requests.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/access_table.h"

namespace berth::daemon {

class TokenUses {
 public:
  // Tells the table what the file has. The table must outlive it.
  TokenUses(const std::string& data_dir, AccessTable& access);
  ~TokenUses();
  TokenUses(const TokenUses&) = delete;
  TokenUses& operator=(const TokenUses&) = delete;

  // Writes what is new since the last time.
  void save();

 private:
  void run();

  const std::string path_;
  AccessTable& access_;
  AccessTable::Uses saved_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace berth::daemon

#pragma once
// Threads beside the I/O threads, for work that may wait or compute for long: handlers of reads, and the steps of
// streams that catch up. Clients take turns (turns.h).

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/http/turns.h"

namespace berth::http {

class Workers {
 public:
  // `nice` lowers the priority of the threads (setpriority(2)), so that under load other threads go first.
  Workers(std::size_t threads, int nice);
  ~Workers();  // stop
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Work that is posted after stop is dropped. `client` names whose turn it is.
  void post(std::function<void()> work, const std::string& client = {});
  // Drops what has not begun, waits for what has, and joins the threads.
  void stop();

 private:
  void run(int nice);

  std::mutex mutex_;
  std::condition_variable ready_;
  Turns<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::http

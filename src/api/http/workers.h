#pragma once
// Threads beside the I/O threads, for work that may wait or compute for long: handlers of reads, and the steps of
// streams that catch up. Work is done in the order in which it was posted.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace berth::http {

class Workers {
 public:
  // `nice` lowers the priority of the threads (setpriority(2)), so that under load other threads go first.
  Workers(std::size_t threads, int nice);
  ~Workers();  // stop
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Work that is posted after stop is dropped.
  void post(std::function<void()> work);
  // Drops what has not begun, waits for what has, and joins the threads.
  void stop();

 private:
  void run(int nice);

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::http

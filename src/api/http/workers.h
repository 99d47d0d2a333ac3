#pragma once
// Threads beside the I/O threads, for work that may wait or compute for long: handlers of reads, and the steps of
// streams that catch up. Clients take turns: one piece of work of each that has some, each client's in the order in
// which it was posted. So a client that posts much waits for itself, and another waits for one piece of it.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
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

  // Work that is posted after stop is dropped. `client` names whose turn it is.
  void post(std::function<void()> work, const std::string& client = {});
  // Drops what has not begun, waits for what has, and joins the threads.
  void stop();

 private:
  using Queue = std::deque<std::function<void()>>;

  void run(int nice);
  std::function<void()> take_next();  // requires: the lock is held, and something waits

  std::mutex mutex_;
  std::condition_variable ready_;
  std::map<std::string, Queue> waiting_;  // by client; no queue is empty
  std::deque<std::string> turns_;         // the clients of waiting_, next first
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::http

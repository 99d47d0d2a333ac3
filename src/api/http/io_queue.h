#pragma once
// Work for one I/O thread from other threads, some of which run at low priority. Asio's own post wakes the I/O thread
// while it holds the lock that the I/O thread takes next. On a busy machine a poster of low priority then waits for its
// turn with the lock held, and all connections of the I/O thread wait with it. Here the lock is given back first.

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace berth::http {

class IoQueue {
 public:
  IoQueue();
  ~IoQueue();
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;

  // For all threads. Work that comes after close is dropped.
  void post(std::function<void()> work);
  void dispatch(std::function<void()> work);  // at once if this is the I/O thread
  void wake();
  void close();

  // For the I/O thread.
  void belongs_to_this_thread();
  int descriptor() const { return descriptor_; }  // readable when there may be work
  void note_wakes();                              // not readable until the next wake
  void run_posted();                              // what there is now, in order

 private:
  std::function<void()> take();

  const int descriptor_;
  std::atomic<std::thread::id> thread_;
  std::mutex mutex_;
  std::deque<std::function<void()>> posted_;
  bool closed_ = false;
};

}  // namespace berth::http
